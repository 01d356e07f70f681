#include "holdfast/data/dataset.h"

#include <numeric>

#include "holdfast/core/files.h"
#include "holdfast/core/large_tensor.h"
#include "holdfast/core/log.h"
#include "holdfast/core/method.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/verify.h"

namespace holdfast::data {
namespace {

at::Tensor rows_of(const at::Tensor& tensor, const std::vector<std::int64_t>& rows) {
  return large_select(tensor, at::tensor(rows, at::kLong));
}

// Refuses files of another content than the known one. A missing file is the loader's to explain, and a folder that the caller
// names is the caller's to check.
void check_files(const DatasetLoader& loader, const std::string& call, const LoadContext& context) {
  const Source source = loader.source();
  if (context.folder != data_folder() || !find_source(source, context.folder)) return;
  for (const FileCheck& file : check_dataset(source, context.folder).files) {
    if (file.state == FileCheck::State::kWrong)
      input_error("{}: {}; get it again with: holdfast data fetch {}", call, file.message, parse_method_call(call).name);
    if (file.state == FileCheck::State::kUnverified)  // an archive that somebody unpacked, say
      log_warning("{}: {}; it is taken as it is", call, file.message);
  }
}

// Only a loader's mistake breaks these; a user's file cannot.
void check_shape(const Dataset& dataset) {
  std::vector<std::int64_t> expected = dataset.schema.layout.sample_shape();
  expected.insert(expected.begin(), dataset.labels.size(0));
  HOLDFAST_CHECK(dataset.inputs.sizes() == at::IntArrayRef(expected));
  HOLDFAST_CHECK(dataset.inputs.scalar_type() == at::kFloat && dataset.inputs.is_contiguous());
  HOLDFAST_CHECK(dataset.labels.scalar_type() == at::kLong);
}

void check_parts(const Dataset& dataset) {
  std::vector<bool> taken(static_cast<std::size_t>(dataset.labels.size(0)), false);
  for (const auto* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    std::int64_t previous = -1;
    for (const std::int64_t row : *part) {
      HOLDFAST_CHECK(previous < row && row < dataset.labels.size(0) && !taken[static_cast<std::size_t>(row)]);
      taken[static_cast<std::size_t>(row)] = true;
      previous = row;
    }
  }
}

void check_values(const Dataset& dataset) {
  if (!all_finite(dataset.inputs)) {
    const at::Tensor first = at::isfinite(dataset.inputs.flatten(1)).logical_not().nonzero()[0];
    input_error("dataset {}: sample {} has a value that is not finite at position {}", dataset.name,
                first[0].item<std::int64_t>(), first[1].item<std::int64_t>());
  }
  const at::Tensor wrong = (dataset.labels < 0).logical_or(dataset.labels >= dataset.classes()).nonzero();
  if (wrong.size(0) > 0) {
    const auto sample = wrong[0].item<std::int64_t>();
    input_error("dataset {}: label {} of sample {} is not one of {} classes", dataset.name,
                dataset.labels[sample].item<std::int64_t>(), sample, dataset.classes());
  }
}

// Gives every number of a table that lacks one the standard deviation of its training rows; of all rows where there is no
// training part.
void know_deviations(Dataset& dataset) {
  Schema& schema = dataset.schema;
  if (schema.features.empty() || schema.layout.kind != Layout::Kind::kVector) return;
  const at::Tensor rows = dataset.train.empty() ? dataset.inputs : dataset.inputs_of(dataset.train);
  const at::Tensor spread = rows.flatten(1).to(at::kDouble).std(0, /*unbiased=*/false).contiguous();
  for (const TableFeature& feature : schema.table_features()) {
    if (feature.is_category) continue;
    const std::int64_t column = feature.columns[0];
    std::optional<double>& deviation = schema.features[static_cast<std::size_t>(column)].deviation;
    if (!deviation) deviation = spread.const_data_ptr<double>()[column];
  }
}

}  // namespace

std::vector<std::int64_t> Dataset::rows(const std::string& part) const {
  if (part == "train") return train;
  if (part == "validation") return validation;
  if (part == "test") return test;
  if (part != "all")
    usage_error("unknown part '{}' of a dataset{}", part, suggestion(part, {"train", "validation", "test", "all"}));
  std::vector<std::int64_t> all(static_cast<std::size_t>(labels.size(0)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

at::Tensor Dataset::inputs_of(const std::vector<std::int64_t>& rows) const {
  return rows_of(inputs, rows);
}
at::Tensor Dataset::labels_of(const std::vector<std::int64_t>& rows) const {
  return rows_of(labels, rows);
}

std::string DatasetLoader::found_at(const LoadContext& context) const {
  return find_source(source(), context.folder).folder;
}

void validate(const Dataset& dataset) {
  if (dataset.labels.size(0) == 0) input_error("dataset {} is empty", dataset.name);
  dataset.schema.check(dataset.name);
  check_shape(dataset);
  check_values(dataset);
  check_parts(dataset);
}

std::string content_digest(const Dataset& dataset) {
  const auto digest_of = [](const at::Tensor& tensor) {
    const at::Tensor plain = tensor.cpu().contiguous();
    return sha256_hex({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()});
  };
  std::string parts =
      dataset.name + '\n' + digest_of(dataset.inputs) + digest_of(dataset.labels) + to_json(dataset.schema).dump();
  for (const std::vector<std::int64_t>* rows : {&dataset.train, &dataset.validation, &dataset.test})
    parts += '\n' + sha256_hex(std::as_bytes(std::span(*rows)));
  return sha256_hex(as_bytes(parts));
}

Dataset load_dataset(const std::string& call, const LoadContext& context) {
  const auto loader = datasets().make(call);
  check_files(*loader, call, context);
  Dataset dataset = loader->load(context);
  dataset.name = datasets().options(call).canonical();
  validate(dataset);
  dataset.digest = content_digest(dataset);  // deviations are made of what it covers
  know_deviations(dataset);
  dataset.schema.describe_table();
  return dataset;
}

}  // namespace holdfast::data
