// holdfast: do a model's explanations hold when the input is nudged?
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include <malloc.h>

#include <c10/util/Exception.h>

#include "command.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/json_error.h"
#include "holdfast/core/log.h"
#include "holdfast/version.h"
#include "local_ranks.h"
#include "sandbox.h"
#include "usage.h"

namespace holdfast::cli {
namespace {

// A subcommand's help starts with its example (its footer).
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const std::string summary = CLI::Formatter::make_description(app);
    return app->get_parent() == nullptr || app->get_footer().empty() ? summary
                                                                     : summary + "\nExample:\n  " + app->get_footer() + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    return app->get_parent() == nullptr ? CLI::Formatter::make_footer(app) : "";
  }
  // In the program's own help a subcommand is one line.
  std::string make_subcommand(const CLI::App* sub) const override {
    std::stringstream out;
    CLI::detail::format_help(out, sub->get_name(), sub->get_description(), column_width_);
    return out.str();
  }
};

// A pass asks for the megabytes that the one before it let go. Had they gone back to the system in between, their pages would be
// cleared anew each time: up to an eighth of an attack on images of 28 x 28.
void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that it takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// What torch throws has a stack trace below its first line.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Commands whose work several processes share.
constexpr std::array<std::string_view, 5> kShared{"attack", "audit", "measure", "reproduce", "train"};

// Joins the other ranks before the command starts; null for a single process. Throws kUsage for a command that one process does.
std::unique_ptr<Communicator> join_ranks(const std::string& command) {
  const RankPlace place = rank_place();
  if (!place.is_one_of_many()) return nullptr;
  if (std::find(kShared.begin(), kShared.end(), command) == kShared.end())
    usage_error(
        "{} runs in one process, and {} were started; audit, attack, measure, reproduce and train share work between ranks",
        command, place.size);
  if (place.rank > 0) set_log_level(LogLevel::kError);
  return std::make_unique<Communicator>(place);
}

// What was printed is a result too: on a full disk it is not one.
void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    failure("standard output could not be written in full: is there no space left?");
}

int run(int argc, char** argv, Outcome& outcome) {
  if (const int processes = local_ranks({argv, argv + argc}); processes > 1) return run_local_ranks(processes, argv);
  CLI::App app{"Holdfast finds out whether a model's explanations hold when the input is nudged."};
  app.name("holdfast");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", std::string("holdfast ") + kVersion);
  app.require_subcommand(1);
  app.footer("What there is: holdfast list\nHelp on a command, with an example: holdfast COMMAND --help");

  outcome.arguments.assign(argv, argv + argc);
  add_list(app, outcome);
  add_describe(app, outcome);
  add_data(app, outcome);
  add_train(app, outcome);
  add_explain(app, outcome);
  add_attack(app, outcome);
  add_measure(app, outcome);
  add_audit(app, outcome);
  add_certify(app, outcome);
  add_reproduce(app, outcome);
  add_report(app, outcome);
  add_leaderboard(app, outcome);
  add_survey(app, outcome);
  add_verify(app, outcome);
  add_completion(app, outcome);
  ProcessSandbox sandbox;
  sandbox.add_to(app, [&](const std::string& command) { outcome.ranks = join_ranks(command); });

  check_arguments(app, {argv + 1, argv + argc});
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    const int exit_code = app.exit(request);
    finish_output();
    return exit_code;
  } catch (const CLI::ParseError& error) {
    if (argc == 1) {
      std::fputs(app.help().c_str(), stderr);
      return kExitBadInput;
    }
    usage_error("{} (see: holdfast {}--help)", explain_parse_error(app, error),
                chosen(app) == &app ? "" : chosen(app)->get_name() + " ");
  }
  finish_output();
  return outcome.ranks ? outcome.ranks->leave(outcome.exit_code) : outcome.exit_code;
}

// Of several ranks that fail, the first one says why.
int fail(const Outcome& outcome, const std::string& message, int exit_code = kExitFailure) {
  if (outcome.ranks && !outcome.ranks->fail(message, exit_code)) return exit_code;
  const bool says_where = outcome.ranks && !outcome.ranks->leads();
  log_line(LogLevel::kError, says_where ? fmt::format("rank {}: {}", outcome.ranks->rank(), message) : message);
  return exit_code;
}

// The program's exit code. What a command held is gone when this returns.
int run_and_explain(int argc, char** argv) {
  Outcome outcome;
  set_interrupt_note(outcome.when_interrupted);
  try {
    return run(argc, argv, outcome);
  } catch (const OtherRankFailed& failure) {
    return failure.code();
  } catch (const Error& error) {
    const bool bare_interrupt = error.kind() == ErrorKind::kInterrupted && std::string(error.what()) == "interrupted";
    return fail(outcome, bare_interrupt ? "interrupted; " + outcome.when_interrupted : error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return fail(outcome, "out of memory; take a smaller --tile, or fewer --threads");
  } catch (const Json::exception& error) {
    const std::string sentence = wrong_json_sentence(error);
    return fail(outcome, sentence.empty() ? "unexpected failure: " + json_reason(error) : sentence,
                sentence.empty() ? kExitFailure : kExitBadInput);
  } catch (const c10::Error& error) {
    return fail(outcome, "torch failed: " + first_line(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return fail(outcome, "unexpected failure: " + first_line(error.what()));
  }
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) {
  holdfast::catch_signals();
  holdfast::cli::keep_freed_memory();
  const int exit_code = holdfast::cli::run_and_explain(argc, argv);
  // Without the destructors of torch's tables and of CUDA, which take a tenth of a second and more.
  std::fflush(nullptr);
  std::_Exit(exit_code);
}
