// A model and the samples it is studied on, and what is checked of the two before any work: the command line reads them from
// files, Python gives arrays.
#pragma once

#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/samples.h"
#include "holdfast/model/model.h"

namespace holdfast::experiment {

struct Subject {
  std::string dataset, model_name;  // in tables
  std::shared_ptr<const Model> model;
  Samples samples;
};

// Each of these throws kInput with a message that begins with `name`, a file or an argument.

// The model takes samples of this shape, as far as it says which it takes.
void check_sample_shape(const Model& model, const at::Tensor& inputs, const std::string& name);
// Logits of the first sample by itself, [classes]: finds out early when the model refuses the inputs or gives something else.
at::Tensor first_logits(const Model& model, const at::Tensor& inputs);
// The schema given, which must be of the samples' shape; without one, what the model knows (null: nothing), else what the shape
// says. `given_name` is how messages call the schema: "the schema FILE".
std::shared_ptr<const Schema> schema_of(const std::shared_ptr<const Schema>& given, const std::string& given_name,
                                        const Model* model, const at::Tensor& inputs, const std::string& name);
// A baseline in the shape of a sample: itself, or a batch of one.
at::Tensor baseline_sample(const at::Tensor& baseline, const at::Tensor& inputs, const std::string& name);
void check_background(const at::Tensor& background, const at::Tensor& inputs, const std::string& name);

}  // namespace holdfast::experiment
