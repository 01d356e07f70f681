#include "surroundings.h"

#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::measure {
namespace {

// What Quantus and Captum take where nothing is said.
constexpr double kBoxRadius = 0.2, kDeviation = 0.1;
// Sample ids and point numbers share the 64 bits that name a stream.
constexpr std::int64_t kPointsOfAnId = std::int64_t{1} << 24;

at::Tensor stream_ids(const MeasureTask& task, const PointBlock& block) {
  const at::Tensor ids = task.samples.ids.slice(0, block.sample, block.sample + block.samples).cpu();
  const at::Tensor points = at::arange(block.point, block.point + block.points, at::kLong);
  return (ids.unsqueeze(1) * kPointsOfAnId + points).flatten();
}

}  // namespace

std::vector<OptionSpec> surroundings_options(const char* from) {
  return {{"samples", 200, between(1, static_cast<double>(kPointsOfAnId)), "points around each sample"},
          {"from", from, one_of({"box", "gaussian", "given"}),
           "points: uniform in a cube around the sample, Gaussian, or the given ones (--endpoints)"},
          {"radius", 0.0, at_least(0),
           "half the cube's side, or the Gaussian's deviation; 0: the task's (--epsilon), else 0.2 and 0.1"}};
}

Surroundings::Surroundings(const Options& options, bool one_sided, std::string name)
    : from_(options.word("from")),
      name_(std::move(name)),
      samples_(options.integer("samples")),
      radius_(options.real("radius")),
      one_sided_(one_sided) {}

void Surroundings::check(const MeasureTask& task) const {
  if (from_ == "given") return check_endpoints(task, name_);
  if (from_ == "box" && one_sided_ && radius(task) <= kQuantusInner)
    usage_error("{}: radius is {}; Quantus' one-sided noise starts at {}: choose more", name_, radius(task), kQuantusInner);
}

std::int64_t Surroundings::count(const MeasureTask& task) const {
  return from_ == "given" ? endpoints_per_sample(task) : samples_;
}

at::Tensor Surroundings::points(const MeasureTask& task, const PointBlock& block) const {
  std::vector<std::int64_t> shape = task.samples.inputs.sizes().vec();
  shape[0] = block.rows();
  const auto own = [&](const at::Tensor& tensor) { return tensor.slice(0, block.sample, block.sample + block.samples); };
  if (from_ == "given") {
    const at::Tensor given = own(task.endpoints).reshape({block.samples, endpoints_per_sample(task), -1});
    return given.slice(1, block.point, block.point + block.points).to(task.samples.inputs.options()).reshape(shape);
  }
  const at::Tensor clean = own(task.samples.inputs).unsqueeze(1), moved = clean.flatten(2) + noise(task, block);
  return with_context_of(clean, moved.unflatten(2, task.samples.inputs.sizes().slice(1)), task.samples.layout()).reshape(shape);
}

double Surroundings::radius(const MeasureTask& task) const {
  if (radius_ > 0) return radius_;
  if (task.epsilon > 0) return task.epsilon;
  return from_ == "gaussian" ? kDeviation : kBoxRadius;
}

// [samples, points, elements].
at::Tensor Surroundings::noise(const MeasureTask& task, const PointBlock& block) const {
  const std::int64_t elements = task.samples.inputs[0].numel();
  const at::Tensor ids = stream_ids(task, block);
  const double high = radius(task);
  at::Tensor drawn;
  if (from_ == "gaussian") {
    drawn = random_normal({elements}, ids, task.seed, "surroundings.gaussian").mul_(high);
  } else {
    const double low = one_sided_ ? kQuantusInner : -high;
    drawn = random_uniform({elements}, ids, task.seed, "surroundings.box").mul_(high - low).add_(low);
  }
  return drawn.view({block.samples, block.points, elements}).to(task.samples.inputs.options());
}

}  // namespace holdfast::measure
