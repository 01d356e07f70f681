#include "holdfast/model/packing.h"

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"

namespace holdfast::model {
namespace packing {

std::int64_t product(const std::vector<std::int64_t>& shape, std::size_t from = 0) {
  std::int64_t numbers = 1;
  for (std::size_t i = from; i < shape.size(); ++i) numbers *= shape[i];
  return numbers;
}

bool is_explained(const FileInput& input) {
  return !input.fixed && at::isFloatingType(input.type);
}

Layout layout_of(const std::vector<FileInput>& inputs, const std::optional<Layout>& asked) {
  std::vector<std::int64_t> shape;
  std::int64_t count = 0, elements = 0;
  for (const FileInput& input : inputs) {
    if (!is_explained(input)) continue;
    ++count;
    elements += product(input.shape);
    shape = input.shape;
  }
  if (count == 0) input_error("no input is explained: one must hold floating-point numbers that are not fixed, or token ids");
  if (asked) return *asked;
  return count == 1 ? Layout::guess(shape) : Layout::vector(elements);
}

}  // namespace packing

InputPacking::InputPacking(std::vector<FileInput> inputs, const std::optional<Layout>& asked, std::optional<Embedding> embedding,
                           std::size_t tokens)
    : inputs_(std::move(inputs)), embedding_(std::move(embedding)), tokens_(tokens) {
  if (embedding_) {
    layout_ = Layout::tokens(inputs_[tokens_].shape.at(0), embedding_->weight.size(1), /*context=*/2);
  } else {
    layout_ = packing::layout_of(inputs_, asked);
    if (layout_.kind == Layout::Kind::kGraph || layout_.sides != 1) input_error("graphs and pairs take no other inputs beside them");
  }
  dim_ = layout_.is_sequence() ? 2 : 1;
  // Explained inputs lie one after the other, and then the context.
  std::int64_t explained = 0, context = layout_.kind == Layout::Kind::kVector ? layout_.length
                                        : layout_.kind == Layout::Kind::kGrid ? layout_.channels
                                                                              : layout_.stride;
  const std::int64_t body = context;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const FileInput& input = inputs_[i];
    if (embedding_ && i == tokens_) {
      places_.push_back({.begin = 0, .end = body, .explained = true});
    } else if (!embedding_ && packing::is_explained(input)) {
      const std::int64_t numbers = layout_.kind == Layout::Kind::kVector ? packing::product(input.shape) : body;
      places_.push_back({.begin = explained, .end = explained + numbers, .explained = true});
      explained += numbers;
    } else {
      const bool each = layout_.is_sequence() && !input.shape.empty() && input.shape[0] == layout_.length;
      const std::int64_t numbers = packing::product(input.shape, each ? 1 : 0);
      places_.push_back({.begin = context, .end = context + numbers, .everywhere = layout_.kind != Layout::Kind::kVector && !each});
      context += numbers;
    }
  }
  layout_ = layout_.with_context(context - body + (embedding_ ? 2 : 0));
}

at::Tensor InputPacking::pack(const std::vector<at::Tensor>& values) const {
  HOLDFAST_CHECK(values.size() == inputs_.size());
  const std::int64_t samples = values[0].size(0);
  const at::ScalarType type = embedding_ ? embedding_->weight.scalar_type() : at::kFloat;
  std::vector<std::int64_t> shape = layout_.sample_shape();
  shape.insert(shape.begin(), samples);
  at::Tensor packed = at::zeros(shape, type);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Place& place = places_[i];
    at::Tensor rows = values[i].cpu();
    if (embedding_ && i == tokens_) {
      const std::int64_t words = embedding_->weight.size(0), least = rows.min().item<std::int64_t>(),
                         most = rows.max().item<std::int64_t>();
      if (least < 0 || most >= words)
        input_error("token ids must be in 0 to {}, the rows of {}; they go from {} to {}", words - 1, embedding_->name, least, most);
      at::Tensor ranked = rows != embedding_->padding;
      for (std::size_t j = 0; j < inputs_.size(); ++j) {
        if (inputs_[j].name == "mask" || inputs_[j].name == "attention_mask") ranked = ranked.logical_and(values[j].cpu() != 0);
      }
      packed.select(2, ids_at()).copy_(rows);
      packed.select(2, ids_at() + 1).copy_(ranked);
      rows = at::embedding(embedding_->weight.cpu(), rows.to(at::kLong));
    }
    const at::Tensor target = packed.slice(dim_, place.begin, place.end);
    if (!place.everywhere) {
      target.copy_(rows.reshape(target.sizes()));
    } else if (layout_.is_sequence()) {
      target.copy_(rows.reshape({samples, 1, -1}).expand_as(target));
    } else {
      target.copy_(rows.reshape({samples, -1, 1, 1}).expand_as(target));
    }
  }
  return packed;
}

}  // namespace holdfast::model
