#include "given_inputs.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/npy.h"
#include "holdfast/core/raw_array.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::cli {
namespace given {

// Empty where the text is a file; a file's name may have the sign too.
std::string name_of_input(const std::string& text) {
  const std::size_t sign = text.find('=');
  return sign == std::string::npos || file_exists(text) ? "" : text.substr(0, sign);
}

// Keys of a schema that are about the inputs and not about their elements.
constexpr const char* kFixed = "fixed";
constexpr const char* kSpecialTokens = "special_tokens";

template <class Value>
std::vector<Value> listed(const Json& schema, const char* key, const std::string& where) {
  if (!schema.contains(key)) return {};
  try {
    return schema.at(key).get<std::vector<Value>>();
  } catch (const Json::exception&) {
    input_error("{}: {}: expected a list of {}, found {}", where, key,
                std::is_same_v<Value, std::string> ? "names" : "whole numbers", schema.at(key).dump());
  }
}

Json schema_json(const SubjectFlags& flags) {
  const Json schema = flags.schema.empty() ? Json::object() : read_json(flags.schema);
  if (!schema.is_object()) input_error("{}: expected an object, found {}", flags.schema, schema.type_name());
  return schema;
}

at::Tensor read_values(const std::string& path, bool allow_non_finite) {
  const NpyFacts facts = read_npy_facts(path);
  const bool is_empty = std::find(facts.shape.begin(), facts.shape.end(), 0) != facts.shape.end();
  if (facts.shape.empty() || is_empty) input_error("{}: holds no samples", path);
  if (facts.type < ElementType::kFloat16) return to_tensor(read_npy(path));
  return read_inputs(path, {.allow_non_finite = allow_non_finite});
}

}  // namespace given

std::string file_of_input(const std::string& text) {
  const std::string name = given::name_of_input(text);
  return name.empty() ? text : text.substr(name.size() + 1);
}

bool needs_packing(const SubjectFlags& flags) {
  if (flags.all_inputs.size() > 1 || !given::name_of_input(flags.all_inputs.front()).empty() || !flags.embedding.empty())
    return true;
  const NpyFacts array = read_npy_facts(flags.inputs);
  const bool whole = array.type != ElementType::kBool && array.type < ElementType::kFloat16;
  return whole && array.shape.size() == 2 && file_exists(flags.model) && !flags.model.ends_with(".safetensors");
}

ReadInputs read_given_inputs(const SubjectFlags& flags, bool allow_non_finite) {
  const Json schema = given::schema_json(flags);
  const auto fixed = given::listed<std::string>(schema, given::kFixed, flags.schema);
  ReadInputs read;
  read.given.special_tokens = given::listed<std::int64_t>(schema, given::kSpecialTokens, flags.schema);
  if (schema.contains("layout")) read.given.layout = schema_from_json({{"layout", schema.at("layout")}}, flags.schema).layout;
  for (const std::string& text : flags.all_inputs) {
    const std::string name = given::name_of_input(text), path = file_of_input(text);
    at::Tensor values = given::read_values(path, allow_non_finite);
    if (!read.values.empty() && values.size(0) != read.values[0].size(0))
      input_error("{}: has {} samples, but {} has {}", path, values.size(0), flags.inputs, read.values[0].size(0));
    const bool is_fixed = std::find(fixed.begin(), fixed.end(), name) != fixed.end();
    const auto same = [&](const GivenInput& other) { return !name.empty() && other.name == name; };
    if (std::any_of(read.given.inputs.begin(), read.given.inputs.end(), same)) usage_error("--inputs: {} is given twice", name);
    read.given.inputs.push_back(
        {.name = name, .type = values.scalar_type(), .shape = values.sizes().slice(1).vec(), .fixed = is_fixed});
    read.values.push_back(std::move(values));
  }
  for (const std::string& name : fixed) {
    const auto called = [&](const GivenInput& input) { return input.name == name; };
    if (std::none_of(read.given.inputs.begin(), read.given.inputs.end(), called))
      input_error("{}: fixed: no input is called '{}' (--inputs {}=FILE.npy)", flags.schema, name, name);
  }
  return read;
}

Schema packed_schema(const SubjectFlags& flags, const Layout& layout) {
  Json json = given::schema_json(flags);
  json.erase(given::kFixed);
  json.erase(given::kSpecialTokens);
  json["layout"] = to_json(Schema::of(layout)).at("layout");
  return schema_from_json(json, flags.schema);
}

}  // namespace holdfast::cli
