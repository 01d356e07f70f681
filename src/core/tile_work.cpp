#include "holdfast/core/tile_work.h"

#include <algorithm>

namespace holdfast {
namespace {

thread_local TileWork* current = nullptr;

}  // namespace

TileWork::TileWork(Progress* progress, std::int64_t units, double expected)
    : progress_(progress), outer_(current), units_(static_cast<double>(units)), left_(expected) {
  current = this;
}

TileWork::~TileWork() {
  current = outer_;
  if (progress_ != nullptr) progress_->add_part(-shown_);
}

void TileWork::report(double done) {
  if (current == nullptr) return;
  current->done_ += done;
  current->left_ = std::max(0.0, current->left_ - done);
  current->show();
}

void TileWork::expect_left(double left) {
  if (current != nullptr) current->left_ = std::max(0.0, left);
}

double TileWork::done_here() {
  return current == nullptr ? 0 : current->done_;
}

double TileWork::left_here() {
  return current == nullptr ? 0 : current->left_;
}

// In steps that can be seen, and never all of the tile.
void TileWork::show() {
  constexpr double kStep = 0.002, kMost = 0.99;
  if (progress_ == nullptr) return;
  const double share = units_ * std::min(kMost, done_ / std::max(done_ + left_, 1e-12));
  if (share < shown_ + kStep * units_) return;
  progress_->add_part(share - shown_);
  shown_ = share;
}

}  // namespace holdfast
