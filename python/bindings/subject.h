// What a call is about: a model, its samples and what is known about them, checked before any work.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "holdfast/data/schema.h"
#include "holdfast/experiment/grid.h"
#include "holdfast/model/model.h"

namespace holdfast::python {

class PythonModel;

// The arguments that explain, attack and measure_model share, as Python gives them: nothing is checked yet.
struct Question {
  std::shared_ptr<Model> model;
  Samples samples;
  std::uint64_t seed = 0;
  TileOptions tiles;
};

struct Examined {
  Subject subject;          // its samples are finite, on any device, with ids and a schema
  at::Tensor first_logits;  // [classes] of the first sample by itself
};

// Throws kInput or kUsage in one sentence.
Examined examine(const Question& question);
// The same for what may follow gradients of gradients: a Python function is asked whether it has them.
Subject examine_twice(const Question& question);

// The model where it is a Python function, else null.
PythonModel* python_model(const Question& question);

// Python's functions run on one thread, each call with overhead of its own: small samples go in larger tiles.
TileOptions tiles_of(const Question& question, const Layout& layout);

// Layers of a Python model cannot be seen, but there is a way to show them: what `check` throws about layers is completed.
void with_advice(const Question& question, const std::function<void()>& check);

// A plain, finite batch of numbers: outside of any graph, and no inference tensor. `what` names it in messages.
at::Tensor checked_batch(const at::Tensor& batch, const std::string& what);

// [B] int64 on the CPU, in [0, classes) when classes > 0.
at::Tensor checked_labels(const at::Tensor& labels, std::int64_t samples, std::int64_t classes, const std::string& what);

}  // namespace holdfast::python
