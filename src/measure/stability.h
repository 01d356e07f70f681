// What the stability measures share: points around each sample, the explanation at each of them, and a number for each point
// that says how far the explanation moved; the measure is their largest or their mean.
//
// The class that is explained stays the sample's own. A point where the model predicts another class has another explanation
// for a good reason: such points are left out (flips=keep takes them in) and counted in `label_flips`. Points at which the
// number is no finite one - the sample's map is zero, say - are left out too and counted in `undefined`. A sample of which no
// point is left is undefined itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "holdfast/measure/measure.h"
#include "surroundings.h"

namespace holdfast::measure {

// The samples of a block and the points near them, n elements each. Maps are in units of the sample's own exp(log_scale), so
// that those of a saturated probability do not vanish.
struct Nearby {
  const MeasureTask& task;
  const PointBlock& block;
  at::Tensor inputs, maps;            // [samples, 1, n]
  at::Tensor near_inputs, near_maps;  // [samples, points, n]
  at::Tensor logits, near_logits;     // [samples, 1, classes], [samples, points, classes]
  at::Tensor log_scale;               // [samples, 1]

  // The maps as they are.
  at::Tensor true_maps() const;
  at::Tensor true_near_maps() const;
};

// Order of a norm: 2, 1 or infinity.
double norm_order(const std::string& word);
// Along the last dimension.
at::Tensor norm_of(const at::Tensor& rows, double order);

OptionSpec norm_option();
// The options that all of them have, with their own between: samples, from, radius, ..., flips, quantus.
std::vector<OptionSpec> stability_options(const char* from, std::vector<OptionSpec> own);

class Stability : public Measure {
 public:
  enum class Over { kMax, kMean };
  // What a point with another prediction does to its sample: it is left out, taken in, or makes it undefined as in Quantus.
  enum class Flips { kExclude, kKeep, kUndefine };

  // `quantus_flips`: what Quantus does with them.
  Stability(const Options& options, Over over, Flips quantus_flips, bool one_sided = false);

  bool higher_is_better() const override { return false; }
  void check(const MeasureTask& task) const override;
  Measurement run(const MeasureTask& task) const override;

 protected:
  // What is kept of each point: [samples, points], or [samples, points, terms] of which ratios() makes one number.
  virtual at::Tensor terms(const Nearby& nearby) const = 0;
  // Turns the terms of all samples, [B, points(, terms)] double on the CPU, into [B, points].
  virtual at::Tensor ratios(const at::Tensor& terms) const { return terms; }
  // Columns beside the value that depend on the samples alone.
  virtual std::vector<std::pair<std::string, std::vector<double>>> notes(const MeasureTask& task, const Explanation& clean) const;

  bool quantus() const { return quantus_; }

 private:
  Nearby explain(const MeasureTask& task, const PointBlock& block, const Explanation& clean) const;
  double reduce(const double* ratios, const bool* flipped, std::int64_t count, double& undefined) const;

  Surroundings surroundings_;
  Over over_;
  bool quantus_;
  Flips flips_;
};

}  // namespace holdfast::measure
