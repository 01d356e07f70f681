// A task for measures, with everything it refers to.
#pragma once

#include <memory>
#include <string>

#include "holdfast/core/torch.h"
#include "holdfast/measure/measure.h"
#include "support/small_models.h"

namespace holdfast::testing_support {
using namespace measure;

struct MeasureCase {
  std::unique_ptr<Model> model;
  at::Tensor inputs;
  std::string explainer = "saliency";
  double epsilon = 0.5;
  std::uint64_t seed = 3;
  at::Tensor endpoints = {};
  Schema schema = Schema::of(Layout::guess(inputs.sizes().slice(1)));
  std::unique_ptr<Explainer> made = nullptr;  // by task()

  Measurement run(const std::string& measure) { return measures().make(measure)->run(task()); }
  void check(const std::string& measure) { measures().make(measure)->check(task()); }

  MeasureTask task() {
    made = explainers().make(explainer);
    const at::NoGradGuard no_graph;
    return {.model = *model,
            .explainer = *made,
            .samples = {.inputs = inputs,
                        .targets = predicted_class(model->logits(inputs)),
                        .ids = at::arange(inputs.size(0), at::kLong),
                        .schema = share_schema(schema)},
            .seed = seed,
            .epsilon = epsilon,
            .endpoints = endpoints};
  }
};

// Column `name` beside the values.
inline const std::vector<double>& part(const Measurement& measured, const std::string& name) {
  for (const auto& [own, values] : measured.parts) {
    if (own == name) return values;
  }
  throw std::out_of_range(name);
}

}  // namespace holdfast::testing_support
