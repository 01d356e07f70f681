// How several inputs of a model file, or token ids, lie in the one tensor that a Model takes: what is explained first, then
// everything else as context (data/layout.h). So a sample carries all that the model reads, and whoever repeats, reorders or cuts
// samples need not know.
//
//     explained                      packed                                        context
//     one table, picture, sequence   its own layout                                numbers of the other inputs
//     several                        a vector of all their elements                the same
//     token ids [L]                  tokens [L, width]: their embedding            ... then the id, then whether it is ranked
//
// Padding is not ranked, nor is a token that an input called `mask` or `attention_mask` leaves out: the model reads its own
// embedding, wherever the packed one was moved to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"
#include "holdfast/data/layout.h"

namespace holdfast::model {

// An input as it is given to a model file.
struct FileInput {
  std::string name;  // of the file's argument; empty: by position
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;  // of a sample
  bool fixed = false;               // neither explained nor perturbed; integers that are no token ids never are
};

struct Embedding {
  std::string name;
  at::Tensor weight;          // [words, width]
  std::int64_t padding = -1;  // its id, or none
};

class InputPacking {
 public:
  // `asked`: the layout of what is explained, where its shape does not say it. `embedding`: of the input at `tokens`.
  InputPacking(std::vector<FileInput> inputs, const std::optional<Layout>& asked, std::optional<Embedding> embedding = {},
               std::size_t tokens = 0);

  const Layout& layout() const { return layout_; }
  const std::vector<FileInput>& inputs() const { return inputs_; }
  const std::optional<Embedding>& embedding() const { return embedding_; }

  // [B, sample...] of the layout. Throws kInput for ids that have no embedding.
  at::Tensor pack(const std::vector<at::Tensor>& values) const;

  // Where an input lies along `dim()`: [begin, end). `everywhere`: the same numbers are repeated at every place.
  struct Place {
    std::int64_t begin = 0, end = 0;
    bool explained = false, everywhere = false;
  };
  const std::vector<Place>& places() const { return places_; }
  std::int64_t dim() const { return dim_; }                      // 1, or 2 for sequences and tokens
  std::int64_t ids_at() const { return layout_.stride + layout_.context - 2; }  // of tokens; the flag is the next

 private:
  std::vector<FileInput> inputs_;
  std::optional<Embedding> embedding_;
  std::size_t tokens_;
  Layout layout_;
  std::vector<Place> places_;
  std::int64_t dim_ = 1;
};

}  // namespace holdfast::model
