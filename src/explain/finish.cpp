#include "finish.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::explain {

OptionSpec target_option(const char* fallback) {
  return {"target", fallback, one_of({"probability", "logit", "ce"}),
          "what is explained: the class's probability, its logit or its cross-entropy"};
}

OptionSpec signed_option(bool fallback) {
  return {"signed", fallback, anything(), "maps with their signs instead of magnitudes"};
}

OptionSpec project_option() {
  return {"project", "auto", one_of({"auto", "groups", "none"}),
          "remove the part of the gradient that no valid row of a one-hot group can feel; auto: where the data has groups"};
}

Projection::Projection(const Options& options, std::string name) : mode_(options.word("project")), name_(std::move(name)) {}

bool Projection::applies(const Schema* schema) const {
  const bool has_groups = schema != nullptr && !schema->groups.empty();
  if (mode_ == "groups" && !has_groups)
    usage_error("{}: the data has no one-hot groups; name them in a schema (--schema FILE)", name_);
  return mode_ != "none" && has_groups;
}

at::Tensor Projection::project(const at::Tensor& gradient, const ExplainTask& task) const {
  return applies(task) ? project_groups(gradient, *task.samples.schema) : gradient;
}

at::Tensor Projection::gauge_share(const at::Tensor& gradient, const ExplainTask& task) const {
  if (!applies(task)) return {};
  const at::NoGradGuard no_graph;
  const at::Tensor all = gradient.detach().flatten(1);
  const at::Tensor removed = all - project_groups(all, *task.samples.schema);
  return removed.square().sum(1) / all.square().sum(1).clamp_min(std::numeric_limits<double>::min());
}

}  // namespace holdfast::explain
