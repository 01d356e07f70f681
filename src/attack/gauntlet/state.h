// Where the components of gauntlet meet: one task, one ledger that keeps the worst preserved point of every sample, and what
// all of them need to know about the clean samples and the model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "../ledger.h"
#include "../walk.h"

namespace holdfast::attack::gauntlet {

// A sample's work is shared out over stages. The first two are restarts that know nothing of each other, so that their agreement
// says something. The third goes on from the better one's point, and the last one again where that found something.
enum class Stage { kFirst, kSecond, kThird, kLast };

// Gradient evaluations that a sample takes which is not broken before the end, about: for progress.
double expected_evaluations(double effort, const Explainer& explainer, const Schema& schema);

class AttackState {
 public:
  // `clean` is the explanation at task.samples.inputs, signs kept. `effort` multiplies the work: 1 is standard. `fresh_noise`:
  // see WalkRules.
  AttackState(const AttackTask& task, Ledger& ledger, const Explanation& clean, double effort, bool fresh_noise = false);

  const AttackTask& task;
  Ledger& ledger;
  const Explanation& clean;
  const bool fresh_noise;
  const Aim aim;
  const std::int64_t features;
  const std::int64_t k;  // size of the top that is attacked; a quarter of the features for metrics of whole maps
  // Whether a walk can follow gradients of the explanation; and whether there are none or they may be of no use, because kinks
  // of layers that are not known cannot be smoothed: then searches are what is left.
  const bool gradients, blind;
  // Whether samples are small: then many short walks are worth more than a few long ones.
  const bool small;
  // [B, features] in the maps' type: 1 on the clean top set; 1 on it and all within the metric's radius of it.
  at::Tensor top, near;

  // Work and random numbers are this stage's from now on. Without a call all work is the first stage's.
  void begin(Stage stage);
  Stage stage() const { return stage_; }
  bool is_restart() const { return stage_ == Stage::kFirst || stage_ == Stage::kSecond; }
  std::uint64_t seed() const { return seed_; }

  // Evaluations that the samples will still take which are not broken yet, about: for progress.
  double expected_left() const;

  // The samples that are not broken yet, `times` over.
  Ledger::Owners rows(std::int64_t times = 1) const;
  // How often something is done that is done `standard` times at standard effort; at least once.
  std::int64_t scaled(std::int64_t standard) const;
  // The same for what is done in one stage alone.
  std::int64_t scaled_alone(std::int64_t standard) const;
  // How often and for how many steps is walked where standard effort walks `walks` times `steps` steps over all stages. Less than
  // one walk is a shorter one.
  struct Walks {
    std::int64_t count, steps;
  };
  Walks scaled_walks(std::int64_t walks, std::int64_t steps) const;
  // The same for many walks of a sample, which are taken side by side: at least `least` rounds of so many walks.
  struct Rounds {
    std::int64_t count, walks;
  };
  Rounds scaled_rounds(std::int64_t walks, std::int64_t least) const;
  // Points that searches judge where walks are blind: together they cost what walks do.
  std::int64_t searched_points() const;
  // Rows of a tensor [B, ...].
  static at::Tensor rows_of(const at::Tensor& tensor, const Ledger::Owners& owners);
  // Uniform numbers in [0, 1), [rows, features], keyed by sample and position among its rows.
  at::Tensor uniform(const Ledger::Owners& owners, const char* purpose, std::int64_t walk) const;

  // Whether directions come with softplus in place of every kink: not where the model has none, or its layers are not known.
  bool has_surrogate() const { return !scales_.empty(); }

  // Explains admitted points, records them, and charges for it.
  void judge(const at::Tensor& points, const Ledger::Owners& owners);
  // Of the rows judged last: the metric turned so that lower is worse for the defender; infinite where nothing counts.
  std::vector<double> harm() const;

  // How rows walk.
  struct WalkPlan {
    enum class Start {
      kAnywhere,    // uniform in the ball; linf: a corner of it
      kAroundBest,  // the best point so far, moved by half of such a way
      kNearBest,    // ... moved by a fifth of such a way, then by small steps
    };
    std::int64_t number = 0, steps = 0;  // `number` tells walks apart
    double from = 0, to = 0;             // sharpness of the surrogate at the first and the last step, of a layer's scale
    Start start = Start::kAnywhere;
  };
  // Walks the rows down `descent`.
  void walk_down(Descent& descent, const Ledger::Owners& owners, const WalkPlan& plan);

 private:
  double mean_evaluations() const;  // of the samples that are running
  at::Tensor starts(const Ledger::Owners& owners, const WalkPlan& plan) const;
  at::Tensor anywhere(const at::Tensor& origin, const at::Tensor& ids, std::int64_t number) const;
  std::function<Rule(std::int64_t)> surrogate(const WalkPlan& plan) const;

  double effort_;
  Stage stage_ = Stage::kFirst;
  double share_ = 1;  // of the effort, for this stage
  double expected_;   // evaluations of a sample in all stages
  std::uint64_t seed_;
  std::vector<double> scales_;  // of each activation's input, over the reference rows and within the ball
};

}  // namespace holdfast::attack::gauntlet
