// The base of attacks with one walker for each sample: an attack by gradient is its Descent and its defaults.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "holdfast/attack/attack.h"
#include "walk.h"

namespace holdfast::attack {

// Defaults that differ between attacks.
struct WalkDefaults {
  const char* start = "clean";     // clean | near | random
  const char* surrogate = "none";  // none | softplus
};

// steps and step_size, the attack's own options, then start, schedule, momentum, surrogate and beta.
std::vector<OptionSpec> with_walk_options(std::vector<OptionSpec> own, const WalkDefaults& defaults = {});

class GradientAttack : public Attack {
 public:
  void check(const AttackTask& task) const override;
  AttackResult run(const AttackTask& task) const final;
  double expected_evaluations(const Explainer& explainer, const Schema& schema) const override;

 protected:
  // `options` are those of with_walk_options.
  explicit GradientAttack(const Options& options);

  // What to go down, given the explanation of the clean inputs with the signs of its maps.
  virtual std::unique_ptr<Descent> descent(const AttackTask& task, const Explanation& clean) const = 0;

 private:
  WalkRules rules(const AttackTask& task) const;
  at::Tensor start(const AttackTask& task) const;

  std::int64_t steps_;
  double step_size_;
  std::string start_;
  bool cosine_;
  double momentum_;
  bool surrogate_;
  double beta_;
};

}  // namespace holdfast::attack
