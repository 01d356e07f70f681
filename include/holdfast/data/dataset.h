// Datasets: inputs, labels, what is known about the features, and which samples are for training, validation and test.
//
// Inputs are raw: images are RGB in [0,1], tables as their encoding says (min-max to [0,1] unless asked otherwise).
// Preprocessing belongs to the model. Labels are classes from 0. Splits depend on the seed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"
#include "holdfast/data/source.h"

namespace holdfast::data {

struct Dataset {
  std::string name;   // the canonical call that made it
  at::Tensor inputs;  // [N, sample shape...] float32, contiguous
  at::Tensor labels;  // [N] int64
  Schema schema;
  std::vector<std::int64_t> train, validation, test;  // disjoint, ascending positions
  std::vector<std::string> notes;  // what a reader of results must know: "stand-in for ...", "2399 rows with ? kept"
  std::string digest = {};         // content_digest, set by load_dataset

  std::int64_t classes() const { return static_cast<std::int64_t>(schema.classes.size()); }
  // Rows of a part: "train", "validation", "test" or "all". Throws kUsage for another word.
  std::vector<std::int64_t> rows(const std::string& part) const;
  at::Tensor inputs_of(const std::vector<std::int64_t>& rows) const;
  at::Tensor labels_of(const std::vector<std::int64_t>& rows) const;
};

struct LoadContext {
  std::string folder = data_folder();
  std::uint64_t seed = 0;
  std::int64_t fold = 0;  // which of five, for datasets split by folds
};

class DatasetLoader {
 public:
  virtual ~DatasetLoader() = default;
  // Reads, encodes and splits. A missing file is one sentence with the command that gets it.
  virtual Dataset load(const LoadContext& context) const = 0;
  // Where it comes from; no files for generic formats and generators.
  virtual Source source() const { return {}; }
  // The folder or package folder in which it lies complete (find_source), or empty.
  virtual std::string found_at(const LoadContext& context) const;
};

const Registry<DatasetLoader>& datasets();

// Throws kInput unless it is not empty, its inputs are finite, its labels in range and its schema agrees with itself.
void validate(const Dataset& dataset);

// SHA-256 of all that a result can depend on: name, inputs, labels, schema and the three parts. Two datasets with one digest are
// the same, wherever their files lie and whatever these are called.
std::string content_digest(const Dataset& dataset);

// datasets().make(call)->load(context), validated, with its digest.
Dataset load_dataset(const std::string& call, const LoadContext& context = {});

}  // namespace holdfast::data
