#include "holdfast/core/progress.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../src/core/progress_line.h"
#include "../../src/core/time_left.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tile_work.h"
#include "support/captured.h"

namespace holdfast {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kClear = "\r\x1b[K";

// Longer than the time between two drawings.
void wait_for_next_draw() {
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
}

class AtLevel {
 public:
  explicit AtLevel(LogLevel level) : old_(log_level()) { set_log_level(level); }
  ~AtLevel() { set_log_level(old_); }
  AtLevel(const AtLevel&) = delete;
  AtLevel& operator=(const AtLevel&) = delete;

 private:
  LogLevel old_;
};

TEST(ProgressLine, TellsRateAndTimeLeft) {
  ProgressLine line{.what = "attack", .unit = "samples", .total = 1000, .done = 250, .seconds = 10};
  EXPECT_EQ(to_string(line), "attack: 25 % 250/1000 samples, 25 samples/s, 30 s left");
  line.note = "loss 0.31";
  EXPECT_EQ(to_string(line), "attack: 25 % 250/1000 samples, 25 samples/s, 30 s left, loss 0.31");
}

TEST(ProgressLine, TellsTheTimeItTook) {
  EXPECT_EQ(to_string({.what = "train", .total = 8, .done = 8, .seconds = 2, .finished = true}), "train: 100 % 8/8, 4/s, 2.0 s");
  EXPECT_EQ(to_string({.what = "train", .total = 8, .done = 0, .seconds = 7384, .finished = true}), "train: 0 % 0/8, 2:03 h");
}

TEST(ProgressLine, HundredPercentMeansAllOfIt) {
  EXPECT_THAT(to_string({.what = "x", .total = 1000, .done = 999}), HasSubstr(" 99 %"));
  EXPECT_THAT(to_string({.what = "x", .total = 1000, .done = 1000}), HasSubstr(" 100 %"));
}

TEST(ProgressLine, BytesAreShownInMegabytes) {
  EXPECT_EQ(to_string({.what = "mnist", .unit = "B", .total = 40'000'000, .done = 10'000'000, .seconds = 4}),
            "mnist: 25 % 10.0/40.0 MB, 2.5 MB/s, 12 s left");
}

TEST(ProgressLine, WhatWasThereBeforeDoesNotCountForTheRate) {
  EXPECT_EQ(to_string({.what = "x", .total = 100, .done = 60, .before = 50, .seconds = 10}), "x: 60 % 60/100, 1/s, 40 s left");
}

TEST(ProgressLine, AnUnknownTotalIsLeftOut) {
  EXPECT_EQ(to_string({.what = "x", .unit = "rows", .done = 60, .seconds = 10}), "x: 60 rows, 6 rows/s");
}

TEST(ProgressLine, LogsGetALineWhenBothTimeAndShareHavePassed) {
  EXPECT_FALSE(log_line_due(29, 100, 100));
  EXPECT_FALSE(log_line_due(31, 9, 100));
  EXPECT_TRUE(log_line_due(31, 10, 100));
  EXPECT_TRUE(log_line_due(31, 0, 0));
}

TEST(ProgressLine, PiecesOfDifferentCostHaveNoRate) {
  ProgressLine line{
      .what = "audit", .total = 1000, .done = 371, .seconds = 10, .only_share = true, .left = 16.9, .note = "gauntlet"};
  EXPECT_EQ(to_string(line), "audit: 37 %, 17 s left, gauntlet");
  line.left.reset();
  EXPECT_EQ(to_string(line), "audit: 37 %, gauntlet") << "the pace is not known yet";
}

// Pieces one after the other, each at a steady pace, with what they really take.
struct TimedPiece {
  WorkPiece work;
  double seconds;
};

// The largest error of the time left, relative to the truth, from a fifth of the way on.
double largest_error(const std::vector<TimedPiece>& pieces, double look_every) {
  std::vector<WorkPiece> work;
  double total = 0;
  for (const TimedPiece& piece : pieces) {
    work.push_back(piece.work);
    total += piece.seconds;
  }
  TimeLeft time(work);
  double now = 0, largest = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const double start = now;
    time.begin(i, now);
    for (; now < start + pieces[i].seconds; now += look_every) {
      time.reach(i, (now - start) / pieces[i].seconds);
      if (now < 0.2 * total || now > 0.98 * total) continue;
      largest = std::max(largest, std::abs(time.seconds(now).value() / (total - now) - 1));
    }
    now = start + pieces[i].seconds;
    time.finish(i, now);
  }
  EXPECT_EQ(time.seconds(now), 0);
  EXPECT_EQ(time.share(now), 1);
  return largest;
}

TEST(TimeLeft, IsExactWhereCostsAre) {
  EXPECT_LT(largest_error({{{"light", 20}, 2}, {{"strong", 1000}, 100}, {{"light", 20}, 2}, {{"strong", 3000}, 300}}, 0.5), 0.01);
}

TEST(TimeLeft, LearnsWhatAKindTakesOnTheWay) {
  // The light attack seems to cost a tenth of the strong one; it costs a hundredth.
  std::vector<TimedPiece> pieces;
  for (int model = 0; model < 3; ++model) {
    pieces.push_back({{fmt::format("light {}", model % 2), 100}, 1});
    pieces.push_back({{"strong", 1000}, 100});
  }
  EXPECT_LT(largest_error(pieces, 0.5), 0.1);
  // Counted by rows alone half of the work would seem done after the first two of six.
  for (TimedPiece& piece : pieces) piece.work = {};
  EXPECT_GT(largest_error(pieces, 0.5), 0.3);
}

TEST(TimeLeft, ASearchThatEndsAtOnceSaysNothingAboutOthers) {
  TimeLeft time({{"er", 100}, {"random", 100}, {"gauntlet, proven at once", 10000}, {"gauntlet", 10000}});
  double now = 0;
  for (std::size_t piece = 0; piece < 3; ++piece) {
    time.begin(piece, now);
    now += piece < 2 ? 1 : 0.5;
    time.finish(piece, now);
  }
  EXPECT_NEAR(time.seconds(now).value(), 100, 1);
}

TEST(TimeLeft, TheSameAttackOnAnotherModelTakesWhatItTookOnTheFirst) {
  // Of the first model's kinds most are quick for their cost, and the slow one has most of the time.
  std::vector<TimedPiece> pieces;
  for (const char* model : {"plain", "second", "third"}) {
    for (const char* quick : {"saliency\nrandom", "saliency\ner", "gradient\nrandom"})
      pieces.push_back({{fmt::format("{}\n{}", model, quick), 100}, 1});
    pieces.push_back({{fmt::format("{}\npath\ner", model), 100}, 60});
  }
  TimeLeft time([&] {
    std::vector<WorkPiece> work;
    for (const TimedPiece& piece : pieces) work.push_back(piece.work);
    return work;
  }());
  double now = 0;
  for (std::size_t piece = 0; piece < 4; ++piece) {
    time.begin(piece, now);
    now += pieces[piece].seconds;
    time.finish(piece, now);
  }
  EXPECT_NEAR(time.seconds(now).value(), 2 * now, 1e-9);
}

TEST(TimeLeft, PiecesSideBySideTakeAsMuchLess) {
  TimeLeft time(std::vector<WorkPiece>(8));
  for (int round = 0; round < 2; ++round) {
    const auto first = static_cast<std::size_t>(2 * round);
    time.begin(first, 10.0 * round);
    time.begin(first + 1, 10.0 * round);
    time.finish(first, 10.0 * (round + 1));
    time.finish(first + 1, 10.0 * (round + 1));
  }
  EXPECT_DOUBLE_EQ(time.seconds(20).value(), 20);
  EXPECT_DOUBLE_EQ(time.share(20), 0.5);
}

TEST(TimeLeft, WhatWasDoneBeforeSaysNothingAboutThePace) {
  TimeLeft time({{"a", 1}, {"a", 1}});
  EXPECT_FALSE(time.seconds(0).has_value());
  time.begin(0, 0);
  time.find_done(0, 0.9);
  EXPECT_FALSE(time.seconds(1).has_value());
  EXPECT_DOUBLE_EQ(time.share(1), 0.45);
  time.finish(0, 10);  // a tenth took ten seconds
  EXPECT_DOUBLE_EQ(time.seconds(10).value(), 100);
}

TEST(TimeLeft, ARunThatWasDoneBeforeIsDone) {
  TimeLeft time({{"a", 1}, {"b", 3}});
  for (std::size_t piece = 0; piece < 2; ++piece) {
    time.begin(piece, 0);
    time.find_done(piece, 1);
    time.finish(piece, 0);
  }
  EXPECT_EQ(time.share(0), 1);
}

TEST(Progress, MovesInsideATile) {
  const std::string text = captured_on_terminal([] {
    Progress progress("audit", std::vector<WorkPiece>(1));
    progress.begin(0);
    progress.begin_part(1, 100);
    {
      const TileWork tile(&progress, 100, 1000);
      for (int i = 0; i < 4; ++i) {
        wait_for_next_draw();
        TileWork::report(100);
      }
      TileWork::expect_left(400);  // less is left than it seemed
      wait_for_next_draw();
      TileWork::report(1);
    }
    progress.advance(100);
    progress.finish(0);
  });
  EXPECT_THAT(text, HasSubstr("audit: 30 %"));
  EXPECT_THAT(text, HasSubstr("audit: 50 %"));
  EXPECT_THAT(text, HasSubstr("audit: 100 %, "));
  EXPECT_THAT(text, HasSubstr(" left"));
}

TEST(Progress, PartsOfAPieceFollowEachOther) {
  const std::string text = captured_on_terminal([] {
    Progress progress("audit", std::vector<WorkPiece>(1));
    progress.begin(0);
    for (const double share : {0.75, 0.25}) {
      progress.begin_part(share, 10);
      wait_for_next_draw();
      progress.advance(10);
    }
    progress.finish(0);
  });
  EXPECT_THAT(text, HasSubstr("audit: 75 %"));
  EXPECT_THAT(text, HasSubstr("audit: 100 %"));
}

TEST(Progress, ATileThatFailsIsTakenBack) {
  const std::string text = captured_on_terminal([] {
    Progress progress("attack", 100, "samples");
    {
      const TileWork tile(&progress, 50, 100);
      TileWork::report(50);
    }
    wait_for_next_draw();
    progress.advance(10);
  });
  EXPECT_THAT(text, HasSubstr("attack: 10 % 10/100 samples, "));
}

TEST(Progress, BeatsWhileNothingIsReported) {
  const std::string text = captured_on_terminal([] {
    Progress progress("audit", 2, "samples");
    progress.advance();
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  });
  EXPECT_GE(std::count(text.begin(), text.end(), '\r'), 4) << "first, twice on the way, last: " << text;
}

TEST(Progress, AShortJobIsOneLineInALog) {
  const std::string text = captured_in_log([] {
    Progress progress("explain", 1000, "samples");
    for (int i = 0; i < 1000; ++i) progress.advance();
  });
  EXPECT_THAT(text, StartsWith("explain: 100 % 1000/1000 samples, "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(Progress, OnATerminalOneLineIsRedrawn) {
  const std::string text = captured_on_terminal([] {
    Progress progress("explain", 4, "samples");
    for (int i = 0; i < 4; ++i) {
      wait_for_next_draw();
      progress.advance();
    }
  });
  EXPECT_THAT(text, StartsWith(std::string(kClear) + "explain: 25 % 1/4 samples, "));
  EXPECT_THAT(text, HasSubstr(std::string(kClear) + "explain: 75 % 3/4 samples, "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, EndsWith("\n"));
}

TEST(Progress, TheLineFitsTheTerminal) {
  const std::string text = captured_on_terminal(
      [] {
        Progress progress("h\u00e9h\u00e9", 4);
        progress.note(std::string(200, 'x'));
      },
      20);
  // Drawn at once and at the end: 19 columns each; the two accents take two bytes each.
  EXPECT_EQ(text.size(), 2 * (std::string(kClear).size() + 19 + 2) + std::string("\r\n").size()) << text;
}

TEST(Progress, MessagesGoAboveTheLine) {
  const std::string text = captured_on_terminal([] {
    Progress progress("train", 10);
    wait_for_next_draw();
    progress.set(5);
    log_info("epoch {} done", 3);
  });
  // Cleared, the message, and the line drawn again below it.
  EXPECT_THAT(text, HasSubstr(std::string(kClear) + "epoch 3 done\r\ntrain: 50 % 5/10"));
}

TEST(Progress, IsSilentWhenQuiet) {
  const AtLevel quiet(LogLevel::kWarning);
  const auto work = [] {
    Progress progress("train", 10);
    wait_for_next_draw();
    progress.advance(10);
  };
  EXPECT_EQ(captured_in_log(work), "");
  EXPECT_EQ(captured_on_terminal(work), "");
}

TEST(Progress, CountsFromSeveralThreads) {
  const std::string text = captured_in_log([] {
    Progress progress("work", 20000);
    const auto work = [&] {
      for (int i = 0; i < 10000; ++i) progress.advance();
    };
    std::jthread other(work);
    work();
    other.join();
  });
  EXPECT_THAT(text, StartsWith("work: 100 % 20000/20000"));
}

TEST(Log, LevelsDecideWhatIsSaid) {
  const auto say_all = [] {
    log_debug("d{}", 1);
    log_info("i{}", 1);
    log_warning("w{}", 1);
    log_line(LogLevel::kError, "e1");
  };
  const auto said_at = [&](LogLevel level) {
    const AtLevel here(level);
    return captured_in_log(say_all);
  };
  EXPECT_EQ(said_at(LogLevel::kDebug), "debug: d1\ni1\nwarning: w1\nerror: e1\n");
  EXPECT_EQ(said_at(LogLevel::kInfo), "i1\nwarning: w1\nerror: e1\n");
  EXPECT_EQ(said_at(LogLevel::kWarning), "warning: w1\nerror: e1\n");
  EXPECT_EQ(said_at(LogLevel::kError), "error: e1\n");
  EXPECT_EQ(said_at(LogLevel::kSilent), "");
}

TEST(Log, LinesOfSeveralThreadsStayWhole) {
  const std::string text = captured_in_log([] {
    const auto say = [](char letter) {
      for (int i = 0; i < 500; ++i) log_info("{}", std::string(50, letter));
    };
    std::jthread other(say, 'a');
    say('b');
  });
  EXPECT_EQ(text.size(), 1000U * 51U);
  for (std::size_t line = 0; line < 1000; ++line) {
    EXPECT_EQ(std::count(text.begin() + static_cast<std::ptrdiff_t>(51 * line),
                         text.begin() + static_cast<std::ptrdiff_t>(51 * line + 50), text[51 * line]),
              50);
  }
}

}  // namespace
}  // namespace holdfast
