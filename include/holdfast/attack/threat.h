// What an attacker may do to an input: stay within epsilon of it in a norm, inside the box, leave frozen features alone
// and (tables, when asked) keep the row valid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/config.h"
#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace at {
class Tensor;
}

namespace holdfast::attack {

enum class Norm { kL2, kLinf, kL1 };
Norm parse_norm(const std::string& text);  // "l2", "linf", "l1"; throws kUsage
std::string to_string(Norm norm);

// Which side of a pair may be perturbed.
enum class Sides { kBoth, kFirst, kSecond };
Sides parse_sides(const std::string& text);  // "both", "first", "second"; throws kUsage
std::string to_string(Sides sides);

// What an attacker is allowed, as a person asks for it. A new option is a member and a line in for_each_option here; what it
// means goes to ThreatModel::make and confine in threat.cpp, what it forbids to the verifier, and its place in Python to the
// class Threat.
struct Threat {
  Norm norm = Norm::kL2;
  std::vector<double> epsilons{1.0};  // in the units of the inputs, rising; each starts where the one before it ended
  std::optional<std::pair<double, double>> box = {};  // every element; unset: no limit but the ball
  bool valid = false;                                 // a perturbed row of a table is a valid row (ValidRows)
  Sides sides = Sides::kBoth;                         // which side of a pair may move
  bool negative_weights = false;                      // graphs: edges may become negative in samples without negative ones
  std::optional<double> tolerance = {};       // the predicted class's probability, or the value, moves by no more than this
  std::optional<std::int64_t> switches = {};  // tables: categories that may take another level; the ball is for numbers
};

// Calls visit(name, member pointer, help) for every option. Flags (--negative-weights), TOML keys and Python's arguments
// (negative_weights) are made from this list.
template <class Visit>
void for_each_option(const Visit& visit) {
  visit("norm", &Threat::norm, "Norm of the ball: l2, linf or l1");
  visit("epsilon", &Threat::epsilons,
        "Radius of the ball, in the units of the inputs, as 0.5 or 8/255; several, as 0.1,0.3,1: each starts where the one "
        "before ended");
  visit("box", &Threat::box, "Range of valid values, LO,HI");
  visit("valid", &Threat::valid, "Tables: only valid rows; ranges, steps and one-hot groups of the schema hold");
  visit("sides", &Threat::sides, "Pairs: which side may be perturbed: both, first or second");
  visit("negative_weights", &Threat::negative_weights, "Graphs: edges may become negative in samples without negative ones");
  visit("tolerance", &Threat::tolerance,
        "How far the predicted class's probability may move; default: no limit. Of a regression: its value; must be given");
  visit("switches", &Threat::switches,
        "Tables: how many categories may take another level; other one-hot columns stay, and the ball is for numbers only");
}

// Reads an option's text as it is written behind a flag. `where` begins the message of a mistake: "--epsilon".
void set_option(Threat& threat, const std::string& name, const std::string& text, const std::string& where);
// Reads a [threat] table; keys that are absent keep their value in `fallback`.
Threat read_threat(const ConfigTable& table, const Threat& fallback);
Json to_json(const Threat& threat);

// What makes a row of a table valid: in every one-hot group exactly one column is 1 and the others are 0; every other
// element lies in its range, on its grid where it has one. An element or group that is left as the clean row has it is valid too.
struct ValidRows {
  std::vector<std::vector<std::int64_t>> groups;  // columns of each one-hot group
  std::vector<double> low, high;                  // range of each element
  std::vector<double> step;                       // values are low + a multiple of it; 0: any value
};

// Categories that may take another level, at most `most` of them, at no cost of the ball.
struct Switches {
  std::int64_t most = 0;
  std::vector<std::vector<std::int64_t>> groups;  // columns of each one-hot group
  std::vector<bool> held;                         // columns that the schema freezes; empty: there are none
};

// What a threat means for the samples of one dataset.
struct ThreatModel {
  Norm norm = Norm::kL2;
  double epsilon = 1.0;                               // in the units of the inputs, > 0 or = 0
  std::optional<std::pair<double, double>> box = {};  // every element; unset: no limit but the ball
  // Elements that the ball does not move: the schema's, a side's, context, and with `switches` those of groups; empty: there
  // are none.
  std::vector<bool> frozen = {};
  std::optional<ValidRows> valid = {};  // set: perturbed rows are valid
  bool non_negative = false;            // a sample without negative elements gets none
  // Equal parts of a sample that have a ball of this radius each: tokens. The norm of a perturbation is that of its largest part.
  std::int64_t blocks = 1;
  Sides sides = Sides::kBoth;             // for showing; `frozen` holds what it means
  std::optional<double> tolerance = {};   // of the predicted class's probability or the value; unset: the same class is enough
  std::optional<Switches> switches = {};  // set: groups are as in the clean row but for these

  // Frozen features come from the schema; a box is only what was asked for. Edges of a graph stay non-negative unless
  // negative weights are asked for or the schema's range has them. Throws kUsage in one sentence for what makes no sense.
  // `epsilon`: one of the threat's; its first where none is given.
  static ThreatModel make(const Threat& threat, const Schema& schema, std::optional<double> epsilon = {});

  bool is_frozen(std::int64_t element) const { return !frozen.empty() && frozen[static_cast<std::size_t>(element)]; }

  // The clean rows with the candidates' levels: no more groups differ than may switch, those that prefer another level most
  // first. Without `switches` the clean rows themselves. Candidates are projected and admitted around them.
  at::Tensor switched(const at::Tensor& candidate, const at::Tensor& clean) const;
  // Whether a candidate may differ from its clean row at all.
  bool can_move() const;

  // The nearest point of ball and box, for l2 and linf exactly; box and ball together by clipping then shrinking towards
  // the clean point, which keeps both. `clean` must itself be inside the box (checked where inputs are read). Where rows
  // must be valid this is the space between them, in which gradient attacks walk.
  at::Tensor project(const at::Tensor& candidate, const at::Tensor& clean) const;
  // The allowed point that stands for a projected one: itself; or where rows must be valid, the row it rounds to. Groups
  // take their largest column, those that prefer another level most first, while the ball lasts; what is left of it goes
  // to the other elements, which are rounded to their grid, towards the clean value where the ball would be left.
  at::Tensor admit(const at::Tensor& projected, const at::Tensor& clean) const;
  // Moves [B, sample...] with zeros where elements are frozen.
  at::Tensor hold_frozen(const at::Tensor& moves) const;
  // Size of candidate - clean in the norm, [B] double; with `switches` of what is in no group.
  at::Tensor distance(const at::Tensor& candidate, const at::Tensor& clean) const;
};

Json to_json(const ThreatModel& threat);

}  // namespace holdfast::attack
