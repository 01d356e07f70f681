// Arrays of the user's own: NumPy files with an optional schema, and MNIST's idx files.

#include "holdfast/core/idx.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/own_arrays.h"

namespace holdfast::data::arrays {

const std::vector<OptionSpec> kOptions = {{"inputs", "", anything(), "file with one sample a row"},
                                          {"labels", "", anything(), "file with one class a sample, from 0"},
                                          {"schema", "", anything(), "JSON file that says what a sample is"},
                                          {"validation", 0.2, between(0, 1), "share of the samples"},
                                          {"test", 0.2, between(0, 1), "share of the samples"}};

const MethodInfo kNpyInfo{.name = "npy",
                          .summary = "arrays of your own in NumPy files",
                          .options = kOptions,
                          .notes =
                              "without a schema [N,n] are vectors, [N,H,W] and [N,C,H,W] images; values are taken as they stand, "
                              "and no range is known"};

const MethodInfo kIdxInfo{.name = "idx",
                          .summary = "images of your own in idx files, as MNIST's, also gzipped",
                          .options = kOptions,
                          .notes = "bytes are scaled to [0,1]; other types are taken as they stand"};

// The schema of the file, or what the shape of the samples says.
Schema schema_for(const std::string& schema_path, const at::Tensor& inputs, const std::string& inputs_path) {
  const std::vector<std::int64_t> shape(inputs.sizes().begin() + 1, inputs.sizes().end());
  if (schema_path.empty()) return Schema::of(Layout::guess(shape));
  Schema schema = read_schema(schema_path);
  const std::vector<std::int64_t> expected = schema.layout.sample_shape();
  std::vector<std::int64_t> without_channel = expected;
  if (schema.layout.kind == Layout::Kind::kGrid && schema.layout.channels == 1) without_channel.erase(without_channel.end() - 3);
  if (shape != expected && shape != without_channel) {
    input_error("{}: samples of shape {} do not fit the {} of {}, which needs {}", inputs_path, to_string(shape),
                schema.layout.describe(), schema_path, to_string(expected));
  }
  return schema;
}

class Arrays : public DatasetLoader {
 public:
  Arrays(const char* kind, const Options& options)
      : inputs_(options.word("inputs")),
        labels_(options.word("labels")),
        schema_(options.word("schema")),
        shares_{.validation = options.real("validation"), .test = options.real("test")},
        kind_(kind) {}

  Dataset load(const LoadContext& context) const final {
    if (inputs_.empty() || labels_.empty()) {
      usage_error("{}: name both files, as in {}(inputs=x.{},labels=y.{})", kind_, kind_, kind_, kind_);
    }
    return load_files(context);
  }

 protected:
  virtual Dataset load_files(const LoadContext& context) const = 0;

  Dataset assemble(const at::Tensor& inputs, const at::Tensor& labels, Schema schema, const LoadContext& context) const {
    return dataset_of_arrays(inputs, labels, std::move(schema), context.seed, shares_);
  }

  std::string inputs_, labels_, schema_;
  SplitShares shares_;

 private:
  const char* kind_;
};

class Npy final : public Arrays {
 public:
  explicit Npy(const Options& options) : Arrays("npy", options) {}

  Dataset load_files(const LoadContext& context) const override {
    const at::Tensor inputs = read_inputs(inputs_);
    if (inputs.dim() < 2)
      input_error("{}: shape {} has no samples with features; expected [N, ...]", inputs_, to_string(inputs.sizes().vec()));
    const Schema schema = schema_for(schema_, inputs, inputs_);
    const at::Tensor labels = read_labels(labels_, inputs.size(0), static_cast<std::int64_t>(schema.classes.size()));
    return assemble(inputs, labels, schema, context);
  }
};

class Idx final : public Arrays {
 public:
  explicit Idx(const Options& options) : Arrays("idx", options) {}

  Dataset load_files(const LoadContext& context) const override {
    RawArray stored = read_idx(inputs_);
    const bool bytes = stored.type == ElementType::kUint8;
    at::Tensor inputs = to_tensor(std::move(stored)).to(at::kFloat);
    if (inputs.dim() < 2 || inputs.numel() == 0) {
      input_error("{}: shape {} has no samples with features; expected [N, ...]", inputs_, to_string(inputs.sizes().vec()));
    }
    if (bytes) inputs = inputs / 255;
    Schema schema = schema_for(schema_, inputs, inputs_);
    if (bytes && schema_.empty()) schema.range = {0, 1};
    return assemble(inputs, class_labels(inputs.size(0)), std::move(schema), context);
  }

 private:
  at::Tensor class_labels(std::int64_t samples) const {
    RawArray stored = read_idx(labels_);
    const bool whole = stored.type != ElementType::kFloat32 && stored.type != ElementType::kFloat64;
    if (!whole || stored.shape != std::vector<std::int64_t>{samples}) {
      input_error("{}: {} of shape {}, expected whole numbers of shape [{}]", labels_, to_string(stored.type),
                  to_string(stored.shape), samples);
    }
    return to_tensor(std::move(stored)).to(at::kLong);
  }
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Npy>(kNpyInfo);
  registry.add<Idx>(kIdxInfo);
}

}  // namespace holdfast::data::arrays

namespace holdfast::data {

Dataset dataset_of_arrays(const at::Tensor& inputs, const at::Tensor& labels, Schema schema, std::uint64_t seed,
                          const SplitShares& shares) {
  if (schema.classes.empty()) {
    const std::int64_t count = std::max<std::int64_t>(2, labels.max().item<std::int64_t>() + 1);
    for (std::int64_t label = 0; label < count; ++label) schema.classes.push_back(fmt::format("{}", label));
  }
  const auto wanted = schema.layout.sample_shape();
  std::vector<std::int64_t> shape = {inputs.size(0)};
  shape.insert(shape.end(), wanted.begin(), wanted.end());
  Dataset dataset;
  dataset.inputs = inputs.reshape(shape).contiguous();
  dataset.labels = labels.to(at::kLong).contiguous();
  dataset.schema = std::move(schema);
  const std::span all(dataset.labels.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(dataset.labels.numel()));
  Split split = stratified_split(all, seed, shares);
  dataset.train = std::move(split.train);
  dataset.validation = std::move(split.validation);
  dataset.test = std::move(split.test);
  return dataset;
}

}  // namespace holdfast::data
