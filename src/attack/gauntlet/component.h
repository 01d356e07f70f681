// A component of gauntlet: one way of looking for the worst point. Components only propose; the ledger keeps what counts.
// A new one is a class in a file of its own, and a line in components().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "state.h"

namespace holdfast::attack::gauntlet {

class Component {
 public:
  virtual ~Component() = default;
  virtual std::string name() const = 0;
  // Whether it can do anything for the task.
  virtual bool fits(const AttackState& state) const = 0;
  // Whether it goes on from the best points so far: the others are for restarts alone.
  virtual bool starts_from_best() const { return false; }
  virtual void run(AttackState& state) = 0;
};

std::unique_ptr<Component> make_random();
std::unique_ptr<Component> make_gaps();
std::unique_ptr<Component> make_contrast();
std::unique_ptr<Component> make_threshold();
std::unique_ptr<Component> make_order();
std::unique_ptr<Component> make_first_cells();
std::unique_ptr<Component> make_cells();
std::unique_ptr<Component> make_crossing();
std::unique_ptr<Component> make_levels();
std::unique_ptr<Component> make_drift();
std::unique_ptr<Component> make_square();
std::unique_ptr<Component> make_evolution();

// All of them, in the order in which they run.
std::vector<std::unique_ptr<Component>> components();

}  // namespace holdfast::attack::gauntlet
