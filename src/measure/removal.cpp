#include "removal.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/blur.h"

namespace holdfast::measure {

std::vector<OptionSpec> removal_options() {
  return {{"remove", "zero", one_of({"zero", "mean", "blur", "resample"}), "what takes a removed feature's place"},
          {"draws", 10, at_least(1), "rows of the data for each sample; remove=resample"},
          {"blur", 0.0, at_least(0), "deviation in pixels, 0: a tenth of the longer side; remove=blur"}};
}

Removal::Removal(const Options& options, std::string name)
    : kind_(options.word("remove")), name_(std::move(name)), draws_(options.integer("draws")), blur_(options.real("blur")) {}

void Removal::check(const MeasureTask& task) const {
  if (kind_ == "blur" && task.samples.layout().kind != Layout::Kind::kGrid)
    usage_error("{}: only images can be blurred, and the samples are a {}", name_, task.samples.layout().describe());
  if (kind_ != "mean" && kind_ != "resample") return;
  if (!task.samples.background.defined() || task.samples.background.size(0) == 0)
    usage_error("{}: remove={} needs rows of the data (--background FILE)", name_, kind_);
  if (task.samples.background.sizes().slice(1) != task.samples.inputs.sizes().slice(1)) {
    input_error("{}: rows of the background have shape {}, the samples {}", name_,
                to_string(task.samples.background.sizes().slice(1).vec()), to_string(task.samples.inputs.sizes().slice(1).vec()));
  }
}

at::Tensor Removal::values(const MeasureTask& task, const PointBlock& block) const {
  const auto flat = [](const at::Tensor& rows) { return rows.flatten(1).unsqueeze(1); };
  if (kind_ == "zero") return at::zeros({1, 1, task.samples.layout().inputs()}, task.samples.inputs.options());
  if (kind_ == "mean")
    return flat(task.samples.background.to(at::kDouble).mean(0, /*keepdim=*/true).to(task.samples.inputs.options()));
  if (kind_ == "blur")
    return flat(blurred(task.samples.inputs.slice(0, block.sample, block.sample + block.samples), task.samples.layout(), blur_));
  return resampled(task, block);
}

at::Tensor Removal::resampled(const MeasureTask& task, const PointBlock& block) const {
  const at::Tensor ids = task.samples.ids.cpu();
  const auto rows = static_cast<std::uint64_t>(task.samples.background.size(0));
  std::vector<std::int64_t> chosen;
  for (std::int64_t b = block.sample; b < block.sample + block.samples; ++b) {
    RandomStream stream(task.seed, "removal.resample", static_cast<std::uint64_t>(ids.const_data_ptr<std::int64_t>()[b]));
    for (std::int64_t draw = 0; draw < draws_; ++draw) chosen.push_back(static_cast<std::int64_t>(stream.below(rows)));
  }
  const at::Tensor index = at::tensor(chosen, at::kLong).to(task.samples.background.device());
  return task.samples.background.index_select(0, index).to(task.samples.inputs.options()).view({block.samples, draws_, -1});
}

}  // namespace holdfast::measure
