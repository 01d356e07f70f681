// What an attacker may do to an input: stay within epsilon of it in a norm, inside the box, leave frozen features alone
// and (tables, when asked) keep the row valid.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "holdfast/attack/norm.h"
#include "holdfast/attack/valid_rows.h"
#include "holdfast/core/json.h"
#include "holdfast/data/schema.h"

namespace holdfast {

// Which side of a pair may be perturbed.
enum class Sides { kBoth, kFirst, kSecond };
Sides parse_sides(const std::string& text);  // "both", "first", "second"; throws kUsage
std::string to_string(Sides sides);

// What may be asked for beside norm, epsilon and box.
struct ThreatOptions {
  bool valid = false;                    // a perturbed row of a table is a valid row (valid_rows.h)
  Sides sides = Sides::kBoth;            // of a pair
  bool negative_weights = false;         // graphs: also where the clean sample has none
  std::optional<double> tolerance = {};  // the predicted class's probability moves by no more than this
};

struct ThreatModel {
  Norm norm = Norm::kL2;
  double epsilon = 1.0;                               // in the units of the inputs, > 0 or = 0
  std::optional<std::pair<double, double>> box = {};  // every element; unset: no limit but the ball
  // Elements that must not move: [sample...] bool, undefined when there are none. The schema's, and a side's.
  at::Tensor frozen = {};
  std::optional<ValidRows> valid = {};   // set: perturbed rows are valid
  bool non_negative = false;             // a sample without negative elements gets none
  Sides sides = Sides::kBoth;            // for showing; `frozen` holds what it means
  std::optional<double> tolerance = {};  // of the predicted class's probability; unset: the same class is enough

  // Frozen features come from the schema; a box is only what was asked for. Edges of a graph stay non-negative unless
  // negative weights are asked for or the schema's range has them. Throws kUsage in one sentence for what makes no sense.
  static ThreatModel make(Norm norm, double epsilon, std::optional<std::pair<double, double>> box, const Schema& schema,
                          const ThreatOptions& options = {});

  // The nearest point of ball and box, for l2 and linf exactly; box and ball together by clipping then shrinking towards
  // the clean point, which keeps both. `clean` must itself be inside the box (checked where inputs are read). Where rows
  // must be valid this is the space between them, in which gradient attacks walk.
  at::Tensor project(const at::Tensor& candidate, const at::Tensor& clean) const;
  // The allowed point that stands for a projected one: itself; or where rows must be valid, the row it rounds to. Groups
  // take their largest column, those that prefer another level most first, while the ball lasts; what is left of it goes
  // to the other elements, which are rounded to their grid, towards the clean value where the ball would be left.
  at::Tensor admit(const at::Tensor& projected, const at::Tensor& clean) const;
  // Size of candidate - clean in the norm, [B] double.
  at::Tensor distance(const at::Tensor& candidate, const at::Tensor& clean) const;
};

Json to_json(const ThreatModel& threat);

}  // namespace holdfast
