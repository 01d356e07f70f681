#include "holdfast/model/packing.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/schema.h"

namespace holdfast::model {
namespace packing {

// Whole numbers up to this are exact in a float.
constexpr std::int64_t kLargestWhole = std::int64_t{1} << 24;

std::int64_t product(const std::vector<std::int64_t>& shape, std::size_t from = 0) {
  std::int64_t numbers = 1;
  for (std::size_t i = from; i < shape.size(); ++i) numbers *= shape[i];
  return numbers;
}

bool is_explained(const GivenInput& input) {
  return !input.fixed && at::isFloatingType(input.type);
}

Layout layout_of(const GivenInputs& given) {
  const GivenInput* last = nullptr;
  std::int64_t count = 0, elements = 0;
  for (const GivenInput& input : given.inputs) {
    if (!is_explained(input)) continue;
    ++count;
    elements += product(input.shape);
    last = &input;
  }
  if (count == 0)
    input_error("no input can be explained: one must hold floating-point numbers and not be fixed, or token ids of an embedding");
  if (count > 1) {
    if (given.layout) input_error("a layout describes one input, and {} are explained; fix the others in the schema", count);
    return Layout::vector(elements);
  }
  const Layout layout = given.layout ? *given.layout : Layout::guess(last->shape);
  if (layout.kind == Layout::Kind::kGraph || layout.sides != 1) input_error("graphs and pairs take no other inputs beside them");
  if (layout.inputs() != elements)
    input_error("the layout, a {}, has {} elements, but the explained input has {}", layout.describe(), layout.inputs(),
                elements);
  return layout;
}

// Numbers along the dimension that context is added to.
std::int64_t body_of(const Layout& layout) {
  if (layout.kind == Layout::Kind::kVector) return layout.length;
  return layout.kind == Layout::Kind::kGrid ? layout.channels : layout.stride;
}

void refuse_large(const at::Tensor& values, const std::string& name) {
  if (values.is_floating_point() || values.scalar_type() == at::kBool || values.numel() == 0) return;
  const std::int64_t largest = values.to(at::kLong).abs().max().item<std::int64_t>();
  if (largest > kLargestWhole)
    input_error("input '{}' holds {}; whole numbers beside an explained input are at most {}", name, largest, kLargestWhole);
}

}  // namespace packing

InputPacking::InputPacking(const GivenInputs& given, std::optional<TokenEmbedding> embedding)
    : inputs_(given.inputs), special_tokens_(given.special_tokens), embedding_(std::move(embedding)) {
  layout_ = embedding_ ? Layout::tokens(inputs_.at(embedding_->input).shape.at(0), embedding_->weight.size(1))
                       : packing::layout_of(given);
  if (embedding_ && embedding_->padding >= 0) special_tokens_.push_back(embedding_->padding);
  dim_ = layout_.is_sequence() ? 2 : 1;
  const std::int64_t body = packing::body_of(layout_);
  std::int64_t explained = 0, end = body;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const GivenInput& input = inputs_[i];
    if (is_tokens(i)) {
      places_.push_back({0, body});
    } else if (!embedding_ && packing::is_explained(input)) {
      const std::int64_t numbers = layout_.kind == Layout::Kind::kVector ? packing::product(input.shape) : body;
      places_.push_back({explained, explained + numbers});
      explained += numbers;
    } else {
      const bool each_step = layout_.is_sequence() && !input.shape.empty() && input.shape[0] == layout_.length;
      const std::int64_t numbers = packing::product(input.shape, each_step ? 1 : 0);
      places_.push_back({end, end + numbers, layout_.kind != Layout::Kind::kVector && !each_step});
      end += numbers;
    }
  }
  layout_ = layout_.with_context(end - body + (embedding_ ? 2 : 0));
}

at::Tensor InputPacking::find_ranked(const std::vector<at::Tensor>& values) const {
  const at::Tensor ids = values[embedding_->input].cpu().to(at::kLong);
  at::Tensor ranked = at::ones_like(ids, at::kBool);
  for (const std::int64_t special : special_tokens_) ranked = ranked.logical_and(ids != special);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const bool is_mask = inputs_[i].name == "mask" || inputs_[i].name == "attention_mask";
    if (is_mask && values[i].sizes() == ids.sizes()) ranked = ranked.logical_and(values[i].cpu() != 0);
  }
  return ranked;
}

at::Tensor InputPacking::pack(const std::vector<at::Tensor>& values) const {
  HOLDFAST_CHECK(values.size() == inputs_.size());
  const std::int64_t samples = values[0].size(0);
  std::vector<std::int64_t> shape = layout_.sample_shape();
  shape.insert(shape.begin(), samples);
  const bool exact = embedding_ && embedding_->weight.scalar_type() == at::kDouble;
  at::Tensor packed = at::zeros(shape, exact ? at::kDouble : at::kFloat);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Place& place = places_[i];
    at::Tensor rows = values[i].cpu();
    packing::refuse_large(rows, inputs_[i].name);
    if (is_tokens(i)) {
      const std::int64_t words = embedding_->weight.size(0);
      rows = rows.to(at::kLong);
      const auto least = rows.min().item<std::int64_t>(), most = rows.max().item<std::int64_t>();
      if (least < 0 || most >= words)
        input_error("token ids must be in 0 to {}, the rows of {}; they go from {} to {}", words - 1, embedding_->name, least,
                    most);
      packed.select(2, ids_at()).copy_(rows);
      packed.select(2, ids_at() + 1).copy_(find_ranked(values));
      rows = at::embedding(embedding_->weight.cpu(), rows);
    }
    const at::Tensor target = packed.slice(dim_, place.begin, place.end);
    if (!place.everywhere) {
      target.copy_(rows.reshape(target.sizes()));
    } else {
      std::vector<std::int64_t> spread(static_cast<std::size_t>(target.dim()), 1);
      spread[0] = samples;
      spread[static_cast<std::size_t>(dim_)] = place.end - place.begin;
      target.copy_(rows.reshape(spread).expand_as(target));
    }
  }
  return packed;
}

std::vector<at::Tensor> InputPacking::in_order(const GivenInputs& given, const std::vector<at::Tensor>& values) const {
  std::vector<at::Tensor> ordered;
  for (std::size_t place = 0; place < inputs_.size(); ++place) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string& name = given.inputs[i].name;
      if (name.empty() ? i == place : name == inputs_[place].name) ordered.push_back(values[i]);
    }
  }
  return ordered;
}

std::vector<at::Tensor> InputPacking::unpack(const at::Tensor& packed) const {
  std::vector<at::Tensor> values;
  at::Tensor embedded;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const GivenInput& input = inputs_[i];
    at::Tensor value = packed.slice(dim_, places_[i].begin, places_[i].end);
    if (is_tokens(i)) {
      const at::Tensor& weight = embedding_->weight;
      const at::Tensor ids = packed.select(2, ids_at()).detach().round().to(at::kLong).clamp(0, weight.size(0) - 1);
      const at::Tensor ranked = packed.select(2, ids_at() + 1).detach() > 0.5;
      embedded = at::where(ranked.unsqueeze(2), value, at::embedding(weight.to(packed.options()), ids));
      values.push_back(ids.to(input.type));
      continue;
    }
    while (places_[i].everywhere && value.dim() > 2) value = value.select(dim_ == 2 ? 1 : 2, 0);
    std::vector<std::int64_t> shape = input.shape;
    shape.insert(shape.begin(), packed.size(0));
    value = value.reshape(shape);
    values.push_back(at::isFloatingType(input.type) ? value : value.detach().round().to(input.type));
  }
  if (embedded.defined()) values.insert(values.begin(), embedded);
  return values;
}

at::Tensor InputPacking::example(std::int64_t samples) const {
  std::vector<at::Tensor> values;
  for (const GivenInput& input : inputs_) {
    std::vector<std::int64_t> shape = input.shape;
    shape.insert(shape.begin(), samples);
    if (!at::isFloatingType(input.type)) {
      values.push_back(at::ones(shape, input.type));
      continue;
    }
    const std::int64_t numbers = packing::product(shape);
    values.push_back((at::arange(numbers, at::kFloat) * 0.7).sin().abs().view(shape));
  }
  if (embedding_ && embedding_->weight.size(0) < 2) values[embedding_->input].zero_();
  return pack(values);
}

Json to_json(const GivenInputs& given) {
  Json json{{"arrays", Json::array()}};
  for (const GivenInput& input : given.inputs)
    json["arrays"].push_back(
        {{"name", input.name}, {"type", c10::toString(input.type)}, {"shape", input.shape}, {"fixed", input.fixed}});
  if (given.layout) json.update(data::to_json(Schema::of(*given.layout)));
  if (!given.special_tokens.empty()) json["special_tokens"] = given.special_tokens;
  return json;
}

GivenInputs given_inputs_from_json(const Json& json, const std::string& where) {
  GivenInputs given;
  for (const Json& array : json.at("arrays")) {
    GivenInput input{.name = array.at("name"), .shape = array.at("shape"), .fixed = array.at("fixed")};
    const std::string type = array.at("type");
    for (const at::ScalarType known :
         {at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kBool, at::kHalf, at::kDouble}) {
      if (type == c10::toString(known)) input.type = known;
    }
    given.inputs.push_back(std::move(input));
  }
  if (json.contains("layout")) given.layout = schema_from_json({{"layout", json.at("layout")}}, where).layout;
  if (json.contains("special_tokens")) given.special_tokens = json.at("special_tokens").get<std::vector<std::int64_t>>();
  return given;
}

}  // namespace holdfast::model
