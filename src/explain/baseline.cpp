#include "baseline.h"

#include <algorithm>
#include <utility>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "parts.h"

namespace holdfast::explain {
namespace {

// Row i holds the weights of a blurred line's pixel i.
at::Tensor blur_matrix(std::int64_t size, double deviation, const at::TensorOptions& options) {
  const at::Tensor place = at::arange(size, at::kDouble);
  const at::Tensor weights = ((place.unsqueeze(0) - place.unsqueeze(1)) / deviation).square().mul(-0.5).exp();
  return (weights / weights.sum(1, /*keepdim=*/true)).to(options);
}

std::string shape_text(at::IntArrayRef shape) {
  return to_string(shape.vec());
}

}  // namespace

OptionSpec baseline_option() {
  return {"baseline", "zero", one_of({"zero", "mean", "blurred", "given"}),
          "what a sample is compared with: zeros, the mean of the background, its own blurred image, or a given one"};
}

OptionSpec blur_option() {
  return {"blur", 0.0, at_least(0), "deviation of baseline=blurred in pixels; 0: a tenth of the longer side"};
}

at::Tensor blurred(const at::Tensor& inputs, const Layout& layout, double deviation) {
  HOLDFAST_CHECK(layout.kind == Layout::Kind::kGrid);
  const double pixels = deviation > 0 ? deviation : 0.1 * static_cast<double>(std::max(layout.height, layout.width));
  const at::TensorOptions options = inputs.options().requires_grad(false);
  const at::Tensor image = inputs.reshape({-1, layout.height, layout.width});
  const at::Tensor columns = blur_matrix(layout.height, pixels, options), rows = blur_matrix(layout.width, pixels, options);
  return at::matmul(at::matmul(columns, image), rows.t()).view_as(inputs);
}

at::Tensor with_group_sums(const at::Tensor& rows, const Schema& schema) {
  at::Tensor level = at::zeros({rows.flatten(1).size(1)}, at::kDouble);
  for (const Group& group : schema.groups) {
    for (const std::int64_t column : group.columns) level[column] = 1 / static_cast<double>(group.columns.size());
  }
  return project_groups(rows, schema) + level.to(rows.options().requires_grad(false)).view(rows.sizes().slice(1));
}

at::Tensor Baseline::at(const at::Tensor& inputs) const {
  const at::Tensor rows = blur ? blurred(inputs, *blur, deviation) : context ? row : common;
  if (context) return with_context_of(inputs, rows, *context);
  return valid_rows != nullptr ? with_group_sums(rows, *valid_rows) : rows;
}

BaselineOption::BaselineOption(const Options& options, std::string name)
    : kind_(options.word("baseline")), name_(std::move(name)), deviation_(options.real("blur")) {}

void BaselineOption::check(const ExplainTask& task) const {
  const at::IntArrayRef sample = task.samples.inputs.sizes().slice(1);
  if (kind_ == "mean") check_background(task, name_);
  if (kind_ == "blurred" && layout_of(task).kind != Layout::Kind::kGrid)
    usage_error("{}: only images can be blurred, and these samples are a {}", name_, layout_of(task).describe());
  if (kind_ != "given") return;
  if (!task.samples.baseline.defined()) usage_error("{}: no baseline was given (--baseline FILE)", name_);
  if (task.samples.baseline.sizes() != sample) {
    input_error("{}: the baseline has shape {}, a sample {}", name_, shape_text(task.samples.baseline.sizes()),
                shape_text(sample));
  }
}

Baseline BaselineOption::of(const ExplainTask& task, bool project) const {
  const at::NoGradGuard no_graph;
  Baseline baseline;
  if (kind_ == "blurred") {
    baseline.blur = layout_of(task);
    baseline.deviation = deviation_;
  } else if (kind_ == "mean") {
    baseline.common = task.samples.background.mean(0, /*keepdim=*/true);
  } else if (kind_ == "given") {
    baseline.common = task.samples.baseline.unsqueeze(0);
  } else {
    baseline.common = at::zeros_like(task.samples.inputs.slice(0, 0, 1));
    baseline.zero = !project;
  }
  if (project) {
    baseline.valid_rows = task.samples.schema.get();
    if (baseline.common.defined()) baseline = {.common = baseline.at(task.samples.inputs)};
  }
  if (task.samples.schema != nullptr && task.samples.layout().context > 0) {
    baseline.context = task.samples.layout();
    baseline.row = std::exchange(baseline.common, at::Tensor());
    baseline.zero = false;
  }
  return baseline;
}

void check_background(const ExplainTask& task, const std::string& what) {
  if (!task.samples.background.defined())
    usage_error("{}: no rows of the data were given to compare with (--background FILE)", what);
  const at::IntArrayRef sample = task.samples.inputs.sizes().slice(1);
  if (task.samples.background.dim() < 1 || task.samples.background.size(0) < 1 ||
      task.samples.background.sizes().slice(1) != sample) {
    input_error("{}: the background has shape {}; rows of shape {} are expected", what,
                shape_text(task.samples.background.sizes()), shape_text(sample));
  }
}

}  // namespace holdfast::explain
