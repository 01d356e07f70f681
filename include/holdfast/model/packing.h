// How the inputs of a model file lie in the one tensor that a Model takes, where they are several or token ids: first what is
// explained, then everything else as context (data/layout.h). A sample so carries all that the model reads, and whoever repeats,
// reorders or cuts samples need not know.
//
//     explained                      packed                                       context of each sample or step
//     one table, image or sequence   its own layout                               the numbers of the other inputs
//     several                        a vector of all their elements               the same
//     token ids [length]             tokens [length, width]: their embeddings     the same, the id, and whether it is ranked
//
// Padding and special tokens are not ranked, nor are tokens that an input called `mask` or `attention_mask` leaves out. The model
// reads their own embedding, wherever the packed one was moved to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/layout.h"
#include "holdfast/model/model.h"

namespace holdfast::model {

// An input as it is given to a model file.
struct GivenInput {
  std::string name;  // of the file's argument; empty: by position
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;  // of a sample
  bool fixed = false;               // neither explained nor perturbed; whole numbers that are no token ids never are
};

// All that is given to a model file. No inputs: one array, which the model takes as it is.
struct GivenInputs {
  std::vector<GivenInput> inputs;
  std::optional<Layout> layout = {};              // of what is explained, where its shape does not say it
  std::vector<std::int64_t> special_tokens = {};  // never ranked, beside padding
};
Json to_json(const GivenInputs& given);
GivenInputs given_inputs_from_json(const Json& json, const std::string& where);

// The embedding that reads token ids.
struct TokenEmbedding {
  std::string name;
  at::Tensor weight;          // [words, width]
  std::int64_t padding = -1;  // its id, or none
  std::size_t input = 0;      // position of the ids among the inputs
};

class InputPacking {
 public:
  // The inputs are those of the file, in its order.
  InputPacking(const GivenInputs& given, std::optional<TokenEmbedding> embedding);

  const Layout& layout() const { return layout_; }
  const std::vector<GivenInput>& inputs() const { return inputs_; }
  const std::optional<TokenEmbedding>& embedding() const { return embedding_; }

  // [B, sample...] of the layout from [B, ...] of each input, in the order of `inputs()`. Throws kInput for ids that have no
  // embedding, and for numbers that a float cannot hold.
  at::Tensor pack(const std::vector<at::Tensor>& values) const;
  // What was given, in that order.
  std::vector<at::Tensor> in_order(const GivenInputs& given, const std::vector<at::Tensor>& values) const;
  // The inputs that the model reads, differentiable by the packed ones. Of token ids the embedded tokens are the first of them.
  std::vector<at::Tensor> unpack(const at::Tensor& packed) const;
  // Samples that any model of these inputs should take.
  at::Tensor example(std::int64_t samples) const;

 private:
  // Where an input lies along `dim_`: [begin, end). `everywhere`: the same numbers are repeated at every place.
  struct Place {
    std::int64_t begin = 0, end = 0;
    bool everywhere = false;
  };
  bool is_tokens(std::size_t input) const { return embedding_ && embedding_->input == input; }
  std::int64_t ids_at() const { return layout_.stride + layout_.context - 2; }  // whether it is ranked is the next number
  at::Tensor find_ranked(const std::vector<at::Tensor>& values) const;

  std::vector<GivenInput> inputs_;
  std::vector<std::int64_t> special_tokens_;
  std::optional<TokenEmbedding> embedding_;
  Layout layout_;
  std::vector<Place> places_;
  std::int64_t dim_ = 1;  // 2 for sequences and tokens
};

// A model and how its samples are packed.
struct PackedModel {
  std::unique_ptr<Model> model;
  std::optional<InputPacking> packing;  // none: the model takes one array of numbers, as it is
};

// As load_model, for a file that may be given several inputs, or token ids; ModelOptions names their embedding.
PackedModel load_packed_model(const std::string& text, at::Device device, const ModelOptions& options, const GivenInputs& given);

}  // namespace holdfast::model
