#include "time_left.h"

#include <algorithm>

namespace holdfast {

TimeLeft::TimeLeft(const std::vector<WorkPiece>& pieces) {
  for (const WorkPiece& piece : pieces) pieces_.push_back({.work = piece});
}

namespace {

// A kind without its first line; empty where it has no other.
std::string tail(const std::string& kind) {
  const std::size_t end = kind.find('\n');
  return end == std::string::npos ? "" : kind.substr(end);
}

// The median: a search that ends at once, because it proved something, says nothing about the others.
double middle(std::vector<double> rates) {
  const auto place = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), place, rates.end());
  return *place;
}

}  // namespace

void TimeLeft::begin(std::size_t piece, double now) {
  pieces_.at(piece).began = now;
}

void TimeLeft::reach(std::size_t piece, double share) {
  Piece& own = pieces_.at(piece);
  own.share = std::clamp(share, own.found_done, 1.0);
}

void TimeLeft::find_done(std::size_t piece, double more) {
  Piece& own = pieces_.at(piece);
  own.found_done = std::min(1.0, own.found_done + more);
  own.share = std::min(1.0, own.share + more);
}

void TimeLeft::finish(std::size_t piece, double now) {
  Piece& own = pieces_.at(piece);
  own.ended = now;
  own.share = 1;
}

double TimeLeft::spent(const Piece& piece, double now) {
  return piece.began < 0 ? 0 : (piece.ended < 0 ? now : piece.ended) - piece.began;
}

std::optional<TimeLeft::Totals> TimeLeft::totals(double now) const {
  std::map<std::string, Pace> kinds;
  for (const Piece& piece : pieces_) {
    const double cost = piece.work.cost * (piece.share - piece.found_done);
    if (cost <= 0) continue;
    Pace& pace = kinds[piece.work.kind];
    pace.seconds += spent(piece, now);
    pace.cost += cost;
  }
  if (kinds.empty()) return std::nullopt;
  std::map<std::string, std::vector<double>> alike;  // by what follows the first line
  std::vector<double> all;
  for (const auto& [kind, pace] : kinds) {
    all.push_back(pace.rate());
    if (!tail(kind).empty()) alike[tail(kind)].push_back(pace.rate());
  }
  const double of_all = middle(all);
  const auto rate_of = [&](const std::string& kind) {
    if (const auto own = kinds.find(kind); own != kinds.end()) return own->second.rate();
    const auto others = alike.find(tail(kind));
    return others == alike.end() ? of_all : middle(others->second);
  };
  Totals result;
  for (const Piece& piece : pieces_) {
    const double seconds = piece.work.cost * rate_of(piece.work.kind);
    result.spent += spent(piece, now);
    result.done += seconds * piece.share;
    result.left += seconds * (1 - piece.share);
  }
  return result;
}

std::optional<double> TimeLeft::seconds(double now) const {
  const std::optional<Totals> work = totals(now);
  if (!work) return std::nullopt;
  double first = now;
  for (const Piece& piece : pieces_) {
    if (piece.began >= 0) first = std::min(first, piece.began);
  }
  const double side_by_side = now > first ? std::max(1.0, work->spent / (now - first)) : 1;
  return work->left / side_by_side;
}

double TimeLeft::share(double now) const {
  if (const std::optional<Totals> work = totals(now); work && work->done + work->left > 0)
    return work->done / (work->done + work->left);
  double done = 0, all = 0;  // without a pace costs must do
  for (const Piece& piece : pieces_) {
    done += piece.work.cost * piece.share;
    all += piece.work.cost;
  }
  return all > 0 ? done / all : 1;
}

}  // namespace holdfast
