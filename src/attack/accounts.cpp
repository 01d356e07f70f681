#include "accounts.h"

#include <algorithm>

#include "holdfast/core/clock.h"
#include "holdfast/core/tile_work.h"

namespace holdfast::attack {

void WorkAccount::begin_component(const std::string& name) {
  close_component();
  const auto is_it = [&](const ComponentCost& component) { return component.name == name; };
  component_ = static_cast<int>(std::find_if(components_.begin(), components_.end(), is_it) - components_.begin());
  if (component_ == static_cast<int>(components_.size())) components_.push_back({.name = name});
  component_start_ = std::chrono::steady_clock::now();
}

void WorkAccount::close_component() {
  if (component_ >= 0) components_[static_cast<std::size_t>(component_)].seconds += seconds_since(component_start_);
}

void WorkAccount::charge(std::int64_t evaluations, const std::vector<char>& done, std::int64_t running) {
  for (std::size_t i = 0; i < done.size(); ++i) evaluations_[i] += done[i] ? 0 : evaluations;
  if (component_ >= 0) components_[static_cast<std::size_t>(component_)].evaluations += evaluations * running;
  TileWork::report(static_cast<double>(evaluations * running));
}

void WorkAccount::charge(std::int64_t evaluations, const std::vector<char>& done, const std::vector<std::int64_t>& owners) {
  std::int64_t charged = 0;
  for (const std::int64_t sample : owners) {
    if (done[static_cast<std::size_t>(sample)]) continue;
    evaluations_[static_cast<std::size_t>(sample)] += evaluations;
    charged += evaluations;
  }
  if (component_ >= 0) components_[static_cast<std::size_t>(component_)].evaluations += charged;
  TileWork::report(static_cast<double>(charged));
}

void WorkAccount::charge_all(std::int64_t evaluations) {
  for (std::int64_t& own : evaluations_) own += evaluations;
}

void ValueHistory::add(const WorkAccount& work, const std::vector<SampleOutcome>& outcomes) {
  if (stride_ == 0 || records_++ % stride_ != 0) return;
  Milestone here{.evaluations = work.evaluations()};
  for (const SampleOutcome& outcome : outcomes) here.values.push_back(outcome.value);
  milestones_.push_back(std::move(here));
  if (milestones_.size() < 2 * kMilestones) return;
  for (std::size_t i = 1; i < kMilestones; ++i) milestones_[i] = std::move(milestones_[2 * i]);
  milestones_.resize(kMilestones);
  stride_ *= 2;
}

double ValueHistory::before_last_fifth(std::size_t sample, const WorkAccount& work) const {
  double value = milestones_.front().values[sample];
  for (const Milestone& milestone : milestones_) {
    if (5 * milestone.evaluations[sample] <= 4 * work.evaluations(sample)) value = milestone.values[sample];
  }
  return value;
}

}  // namespace holdfast::attack
