// What takes the place of a removed feature: `remove=zero|mean|blur|resample`.
//
//     zero       0
//     mean       the element's mean over the data's rows
//     blur       the same pixel of the blurred picture; grids only
//     resample   the same element of a row of the data; `draws` rows, whose results are averaged. A row gives all removed
//                features at once, so what is put in goes together; columns of a one-hot group are removed together.
//
// Zeros and means are rarely in the data: a model's answer to them may be an answer to something it never saw. Resampled rows
// are.
#pragma once

#include <string>
#include <vector>

#include "holdfast/measure/measure.h"
#include "points.h"

namespace holdfast::measure {

std::vector<OptionSpec> removal_options();

class Removal {
 public:
  // `name` is the measure's, for messages.
  Removal(const Options& options, std::string name);

  void check(const MeasureTask& task) const;
  std::int64_t draws() const { return kind_ == "resample" ? draws_ : 1; }
  bool whole_groups() const { return kind_ == "resample"; }
  // What replaces the elements of the block's samples, [samples or 1, draws, elements].
  at::Tensor values(const MeasureTask& task, const PointBlock& block) const;

 private:
  at::Tensor resampled(const MeasureTask& task, const PointBlock& block) const;

  std::string kind_, name_;
  std::int64_t draws_;
  double blur_;
};

}  // namespace holdfast::measure
