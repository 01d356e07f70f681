// Points around a sample at which its explanation is asked for again: uniform in a cube, Gaussian, or given. Each point has
// a random stream of its own, named by the seed, the sample's id and the point's number: more points, other blocks or another
// memory limit change none of them.
#pragma once

#include <string>
#include <vector>

#include "endpoints.h"
#include "holdfast/measure/measure.h"
#include "points.h"

namespace holdfast::measure {

// `from`: box, gaussian or given.
std::vector<OptionSpec> surroundings_options(const char* from);

class Surroundings {
 public:
  // Inner radius of a one-sided cube [inner, radius] per element: the noise of Quantus' relative stability.
  static constexpr double kQuantusInner = 0.02;

  // `name` is the measure's, for messages.
  Surroundings(const Options& options, bool one_sided, std::string name);

  void check(const MeasureTask& task) const;
  std::int64_t count(const MeasureTask& task) const;  // points around each sample
  // The points of a block, [block.rows(), sample...].
  at::Tensor points(const MeasureTask& task, const PointBlock& block) const;

 private:
  double radius(const MeasureTask& task) const;
  at::Tensor noise(const MeasureTask& task, const PointBlock& block) const;

  std::string from_, name_;
  std::int64_t samples_;
  double radius_;
  bool one_sided_;
};

}  // namespace holdfast::measure
