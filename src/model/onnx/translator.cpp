#include "translator.h"

#include <algorithm>

namespace holdfast::model::onnx {

Argument list(const Integers& integers) {
  return {Items(integers.begin(), integers.end())};
}

Translator::Translator(Graph graph) : graph_(std::move(graph)) {
  program_.path = graph_.path;
  program_.kind = "an ONNX file";
  program_.inputs = graph_.inputs;
}

void Translator::refuse(const std::string& why) const {
  input_error("{}: operator {}{} {}", graph_.path, node_->type, node_->name.empty() ? "" : fmt::format(" ({})", node_->name),
              why);
}

const std::string& Translator::input_name(std::size_t input) const {
  if (!has(input)) refuse(fmt::format("lacks input {}", input));
  return node_->inputs[input];
}

const RawArray* Translator::constant(std::size_t input) const {
  if (!has(input)) return nullptr;
  const auto found = graph_.constants.find(node_->inputs[input]);
  return found == graph_.constants.end() ? nullptr : &found->second;
}

std::optional<Integers> Translator::known(std::size_t input, const char* older) const {
  if (const auto* value = node_->attributes.contains(older) ? &node_->attributes.at(older) : nullptr) {
    if (const auto* many = std::get_if<Integers>(value)) return *many;
  }
  if (const RawArray* array = constant(input)) return integers_in(*array);
  if (!has(input)) return std::nullopt;
  const auto sizes = sizes_.find(node_->inputs[input]);
  if (sizes == sizes_.end()) return std::nullopt;
  Integers result;
  if (sizes->second.all_of) return std::nullopt;
  for (const Argument& item : sizes->second.items) {
    if (!std::holds_alternative<std::int64_t>(item.value)) return std::nullopt;
    result.push_back(std::get<std::int64_t>(item.value));
  }
  return result;
}

Integers Translator::needed(std::size_t input, const char* older) const {
  const auto found = known(input, older);
  if (!found || found->empty()) refuse(fmt::format("has {} that are not constant", older));
  return *found;
}

std::optional<Sizes> Translator::sizes(std::size_t input) const {
  if (!has(input)) return std::nullopt;
  if (const auto found = sizes_.find(node_->inputs[input]); found != sizes_.end()) return found->second;
  const RawArray* array = constant(input);
  if (array == nullptr || array->shape.size() > 1) return std::nullopt;
  const auto integers = integers_in(*array);
  if (!integers) return std::nullopt;
  return Sizes{Items(integers->begin(), integers->end()), array->shape.empty()};
}

const Items& Translator::items_of(const Sizes& sizes) const {
  if (sizes.all_of) refuse("computes with all sizes of a tensor whose rank the file does not tell");
  return sizes.items;
}

std::optional<std::int64_t> Translator::rank(std::size_t input) const {
  if (const RawArray* array = constant(input)) return static_cast<std::int64_t>(array->shape.size());
  const auto found = graph_.ranks.find(input_name(input));
  return found == graph_.ranks.end() ? std::nullopt : std::optional(found->second);
}

std::string Translator::where() const {
  return node_ == nullptr ? "its result" : fmt::format("{}{}", node_->type, node_->name.empty() ? "" : " (" + node_->name + ")");
}

Argument Translator::call(const std::string& operation, std::vector<NamedArgument> arguments) {
  const std::string name = fresh();
  program_.calls.push_back({operation, std::nullopt, std::move(arguments), {{{name}}}, where()});
  return {Reference{name}};
}

Argument Translator::call(const std::string& operation, const Items& arguments) {
  std::vector<NamedArgument> positional;
  for (const Argument& argument : arguments) positional.push_back({"", argument});
  return call(operation, std::move(positional));
}

Argument Translator::use_constant(const std::string& name, const RawArray& array) {
  if (used_.insert(name).second) {
    const bool parameter = is_floating(array.type) && array.count() > 1 && all_finite_floats(array);
    program_.constants.push_back({name, name, parameter, array});
  }
  return {Reference{name}};
}

Argument Translator::make_constant(RawArray array) {
  const std::string name = fresh();
  program_.constants.push_back({name, name, is_floating(array.type) && all_finite_floats(array), std::move(array)});
  return {Reference{name}};
}

Argument Translator::tensor(std::size_t input) {
  const std::string& name = input_name(input);
  if (const auto found = graph_.constants.find(name); found != graph_.constants.end()) return use_constant(name, found->second);
  if (const auto found = sizes_.find(name); found != sizes_.end()) return as_tensor(found->second);
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? Argument{Reference{name}} : alias->second;
}

Argument Translator::as_tensor(const Sizes& sizes) {
  if (sizes.all_of) return call("aten::_shape_as_tensor", Items{*sizes.all_of});
  Items parts;
  for (const Argument& item : sizes.items) {
    parts.push_back(
        call("aten::scalar_tensor", {{"s", item}, {"dtype", {ElementType::kInt64}}, {"device", {program::OwnDevice{}}}}));
  }
  return sizes.is_scalar ? parts.at(0) : call("aten::stack", {{parts}, {std::int64_t{0}}});
}

std::optional<std::int64_t> Translator::rank_after() const {
  const auto changed = [&](std::int64_t by) { return rank(0) ? std::optional(*rank(0) + by) : std::nullopt; };
  const std::string& type = node_->type;
  if (type == "Constant" || type == "LSTM" || type == "GRU" || type == "RNN") return std::nullopt;
  if (type == "Gemm" || type == "Flatten") return 2;
  if (type == "Reshape" || type == "Expand" || type == "ConstantOfShape") {
    const auto wanted = sizes(type == "ConstantOfShape" ? 0 : 1);
    if (!wanted || wanted->all_of) return std::nullopt;
    const auto length = static_cast<std::int64_t>(wanted->items.size());
    return type == "Expand" ? std::optional(std::max(length, rank(0).value_or(0))) : std::optional(length);
  }
  if (type == "Unsqueeze") return changed(static_cast<std::int64_t>(needed(1, "axes").size()));
  if (type == "Squeeze") return changed(-static_cast<std::int64_t>(needed(1, "axes").size()));
  if (type == "Gather") return rank(1) ? changed(*rank(1) - 1) : std::nullopt;
  if (type == "Shape" || type == "Range") return 1;
  if (type.starts_with("Reduce")) {
    const auto axes = known(1, "axes");
    if (integer("keepdims", 1) != 0) return rank(0);
    return axes ? changed(-static_cast<std::int64_t>(axes->size())) : std::optional<std::int64_t>(0);
  }
  // All others keep what they read; of several the longest counts, because sizes are stretched.
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const bool option = i > 0 && (type == "Slice" || type == "Clip" || type == "Pad" || type == "Split" || type == "Dropout");
    if (!has(i) || option) continue;
    const auto dims = rank(i);
    if (!dims) return std::nullopt;
    longest = std::max(longest, *dims);
  }
  return longest;
}

program::Program Translator::translate() {
  for (const Node& node : graph_.nodes) {
    node_ = &node;
    const auto found = operators().find(node.type);
    if (found == operators().end()) refuse("is not read; export the model as a torch.export program (.pt2) instead");
    if (node.outputs.empty()) refuse("gives nothing");
    found->second(*this);
    for (const std::string& output : node.outputs) {
      if (const auto dims = rank_after(); dims && !output.empty()) graph_.ranks.emplace(output, *dims);
    }
  }
  node_ = nullptr;
  for (const std::string& output : graph_.outputs) {
    const auto found = aliases_.find(output);
    const auto* reference = found == aliases_.end() ? nullptr : std::get_if<Reference>(&found->second.value);
    if (reference == nullptr) input_error("{}: its result {} is not computed", graph_.path, output);
    program_.outputs.push_back({graph_.outputs.size() > 1 ? output : "", reference->name});
  }
  if (program_.outputs.empty()) input_error("{} gives nothing", graph_.path);
  return std::move(program_);
}

program::Program to_program(Graph graph) {
  return Translator(std::move(graph)).translate();
}

}  // namespace holdfast::model::onnx
