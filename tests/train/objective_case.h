// A small network in double precision with a batch, for the tests of objectives.
#pragma once

#include <gtest/gtest.h>

#include "../../src/train/stack.h"
#include "holdfast/train/objective.h"
#include "plain_mlp.h"
#include "support/small_models.h"

namespace holdfast::train {

struct ObjectiveCase {
  struct Shape {
    std::string activation = "relu";
    std::int64_t classes = 2, samples = 6;
    bool groups = false;
    std::uint64_t seed = 1;
  };
  static constexpr std::int64_t kFeatures = 12;

  explicit ObjectiveCase(const Shape& shape)
      : network(testing_support::mlp_network(
            {.features = kFeatures,
             .hidden = 7,
             .classes = shape.classes,
             .seed = shape.seed,
             .activation = shape.activation == "relu" ? op::Activation{} : testing_support::softplus(2),
             .type = at::kDouble})),
        schema(Schema::of(Layout::vector(kFeatures))),
        inputs(testing_support::normal_tensor({shape.samples, kFeatures}, 40, at::kDouble)),
        labels(at::arange(shape.samples, at::kLong).remainder(shape.classes)) {
    network.require_grad(true);
    if (shape.groups) schema.groups = {{"colour", {2, 3, 4}, {"red", "green", "blue"}}, {"sex", {9, 10}, {"f", "m"}}};
  }

  TrainBatch batch(double progress = 0.9) const {
    return {.inputs = inputs,
            .labels = labels,
            .sample_ids = at::arange(inputs.size(0)),
            .schema = schema,
            .seed = 5,
            .progress = progress};
  }

  Vector x(std::int64_t b) const { return to_vector(inputs[b]); }
  std::size_t label(std::int64_t b) const { return static_cast<std::size_t>(labels[b].item<std::int64_t>()); }

  // Values of the term `name`, [B].
  at::Tensor term(const std::string& call, const std::string& name, double progress = 0.9) {
    const auto objective = objectives().make(call);
    objective->check(network, schema);
    const std::vector<Term> terms = objective->terms(progress);
    const std::vector<at::Tensor> values = objective->values(*make_trainee(network), batch(progress));
    EXPECT_EQ(terms.size(), values.size());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (terms[i].name == name) return values[i].detach();
    }
    ADD_FAILURE() << call << " has no term " << name;
    return at::full({inputs.size(0)}, NAN);
  }

  Network network;
  Schema schema;
  at::Tensor inputs, labels;
};

// Every sample's value of a term against what `plain(b)` gives.
inline void expect_term(ObjectiveCase& subject, const std::string& call, const std::string& name,
                        const std::function<double(std::int64_t)>& plain, double tolerance = 1e-9) {
  const at::Tensor values = subject.term(call, name);
  for (std::int64_t b = 0; b < subject.inputs.size(0); ++b) {
    const double expected = plain(b);
    EXPECT_NEAR(values[b].item<double>(), expected, tolerance * std::max(1.0, std::abs(expected)))
        << call << " " << name << " " << b;
  }
}

}  // namespace holdfast::train
