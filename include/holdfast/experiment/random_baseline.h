// The random baseline of a cell: the worst of random points on the surface of the same ball, judged as the attack's points are.
// An attack that finds less than it says nothing about robustness.
#pragma once

#include <optional>
#include <string>

#include "holdfast/experiment/cell.h"

namespace holdfast {

struct RandomBaseline {
  std::string attack;        // the call
  std::int64_t samples = 0;  // points for each sample
  Interval value;
};

// The call that is run beside the cell's attack; nothing beside `random` itself. 300 points, as many as cost what 100 steps of er
// do; where a sample is large or an explanation takes many passes, as many as cost a tenth of what the attack did, 10 at least.
std::optional<std::string> random_baseline_call(const CellTask& task, const CellResult& found);

// `task` is the attack's; its start is not given to random points. `store` as for run_cell.
RandomBaseline run_random_baseline(const CellTask& task, const std::string& call, const TileOptions& tiles,
                                   const TileStore* store = nullptr);

// Whether random points harmed more than an attack with this mean.
bool beats(const RandomBaseline& random, double mean, Direction direction);

// {"attack", "samples", "mean", "low", "high"}
Json to_json(const RandomBaseline& random);

}  // namespace holdfast
