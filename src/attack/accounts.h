// Accounting and trace of an attack: what work was done on each sample, by which component, and how its value fell with it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/attack/attack.h"

namespace holdfast::attack {

// Gradient evaluations of every sample and, where an attack has components, of each of these. Samples that are done cost nothing.
class WorkAccount {
 public:
  explicit WorkAccount(std::size_t samples) : evaluations_(samples) {}

  // The component may have worked before: then this is more of its work.
  void begin_component(const std::string& name);
  void close_component();
  // `done`: one flag for each sample; `running`: how many are not done.
  void charge(std::int64_t evaluations, const std::vector<char>& done, std::int64_t running);
  // Charges every one of `owners`, which are positions of samples, that is not done.
  void charge(std::int64_t evaluations, const std::vector<char>& done, const std::vector<std::int64_t>& owners);
  void charge_all(std::int64_t evaluations);

  std::int64_t evaluations(std::size_t sample) const { return evaluations_[sample]; }
  const std::vector<std::int64_t>& evaluations() const { return evaluations_; }
  // The position of the component at work, -1 where there are none.
  int component() const { return component_; }
  const std::string& component_name(int component) const { return components_[static_cast<std::size_t>(component)].name; }
  std::vector<ComponentCost> take_components() { return std::move(components_); }

 private:
  std::vector<std::int64_t> evaluations_;
  std::vector<ComponentCost> components_;
  int component_ = -1;
  std::chrono::steady_clock::time_point component_start_;
};

// Values of all samples at milestones of the work. At most twice kMilestones are kept: then every other one goes, and from then
// on only every other record makes one.
class ValueHistory {
 public:
  // Nothing is kept before this.
  void start() { stride_ = 1; }
  void add(const WorkAccount& work, const std::vector<SampleOutcome>& outcomes);
  bool is_empty() const { return milestones_.empty(); }
  // The sample's value at the last milestone before four fifths of its work.
  double before_last_fifth(std::size_t sample, const WorkAccount& work) const;

 private:
  struct Milestone {
    std::vector<std::int64_t> evaluations;
    std::vector<double> values;
  };
  static constexpr std::size_t kMilestones = 128;
  std::vector<Milestone> milestones_;
  std::int64_t records_ = 0, stride_ = 0;
};

}  // namespace holdfast::attack
