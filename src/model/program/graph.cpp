#include "graph.h"

#include <unordered_map>

#include <torch/csrc/jit/frontend/schema_matching.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "../torchscript/refuse.h"
#include "../torchscript/script.h"
#include "holdfast/core/error.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"

namespace holdfast::model::program {
namespace {

using torch::jit::Graph;
using torch::jit::NamedValue;
using torch::jit::Value;

// The number is given where the schema wants a tensor: another overload takes numbers.
struct WantsNumber {};

class GraphMaker {
 public:
  GraphMaker(Program program, at::Device device)
      : program_(std::move(program)), device_(device), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<Graph> make() {
    graph_->addInput("self");
    for (const Input& input : program_.inputs) bind(input.name, graph_->addInput(), input.name);
    for (Constant& constant : program_.constants) {
      const at::Tensor tensor = to_tensor(std::move(constant.array)).to(device_);
      refuse_non_finite(constant, tensor);
      bind(constant.name, graph_->insertConstant(tensor), "self." + constant.own_name);
    }
    for (const Call& call : program_.calls) add(call);
    graph_->registerOutput(result());
    return graph_;
  }

 private:
  void bind(const std::string& name, Value* value, const std::string& shown) {
    if (!values_.emplace(name, value).second) input_error("{}: two values are called {}", program_.path, name);
    // Torch keeps numbers for names of its own.
    if (!shown.empty() && shown.find_first_not_of("0123456789") != std::string::npos) value->setDebugName(shown);
  }

  Value* find(const std::string& name, const std::string& where) const {
    const auto found = values_.find(name);
    if (found == values_.end()) input_error("{}: {} reads {}, which is not there", program_.path, where, name);
    return found->second;
  }

  void refuse_non_finite(const Constant& constant, const at::Tensor& tensor) const {
    if (!tensor.is_floating_point()) return;
    const bool bad = constant.is_parameter ? !at::isfinite(tensor).all().item<bool>() : at::isnan(tensor).any().item<bool>();
    if (bad)
      input_error("{}: {} holds {}", program_.path, constant.own_name,
                  constant.is_parameter ? "a number that is not finite" : "NaN");
  }

  void add(const Call& call) {
    if (!torchscript::only_computes(call.operation))
      input_error("{} uses {}, which does not only compute; such a model is not run", program_.path, call.operation);
    std::vector<Value*> results;
    try {
      results = call.overload ? by_overload(call) : by_types(call);
    } catch (const WantsNumber&) {
      results = by_types(call);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      input_error("{}: {} cannot be called so: {}", program_.path, call.where, torchscript::essence(error.what()));
    }
    if (results.size() < call.results.size()) {
      input_error("{}: {} gives {} values, not {}", program_.path, call.where, results.size(), call.results.size());
    }
    for (std::size_t i = 0; i < call.results.size(); ++i) bind_result(call, call.results[i], results[i]);
  }

  void bind_result(const Call& call, const Result& result, Value* value) {
    if (!result.is_list) {
      if (!result.names.empty() && !result.names[0].empty()) bind(result.names[0], value, result.names[0]);
      return;
    }
    if (value->type()->kind() != c10::TypeKind::ListType) input_error("{}: {} gives no list", program_.path, call.where);
    const auto items = graph_->insertNode(graph_->createListUnpack(value, result.names.size()))->outputs();
    for (std::size_t i = 0; i < result.names.size(); ++i) {
      if (!result.names[i].empty()) bind(result.names[i], items[i], result.names[i]);
    }
  }

  std::vector<Value*> by_overload(const Call& call) {
    const auto operation = torch::jit::findOperatorFor({call.operation, *call.overload});
    if (!operation) input_error("{}: {}: this torch has no such operator", program_.path, call.where);
    const c10::FunctionSchema& schema = operation->schema();
    std::vector<NamedValue> named;
    for (const NamedArgument& argument : call.arguments) {
      const auto index = schema.argumentIndexWithName(argument.name);
      if (!index) input_error("{}: {} has no argument {}", program_.path, call.where, argument.name);
      const c10::TypePtr type = schema.arguments()[static_cast<std::size_t>(*index)].type();
      named.emplace_back(argument.name, value_of(argument.value, type, call));
    }
    const auto matched = torch::jit::matchSchema(schema, {}, *graph_, {}, named);
    torch::jit::Node* node = graph_->insertNode(graph_->create(c10::Symbol::fromQualString(call.operation), matched.inputs, 0));
    for (const c10::TypePtr& type : matched.return_types) node->addOutput()->setType(type);
    node->getOperation();  // throws where torch's interpreter would not find it
    return {node->outputs().begin(), node->outputs().end()};
  }

  // Torch chooses the overload that fits, as it does for a call in Python.
  std::vector<Value*> by_types(const Call& call) {
    std::vector<NamedValue> positional, named;
    for (const NamedArgument& argument : call.arguments) {
      Value* value = value_of(argument.value, nullptr, call);
      if (argument.name.empty())
        positional.emplace_back(value);
      else
        named.emplace_back(argument.name, value);
    }
    Value* result = graph_->insert(c10::Symbol::fromQualString(call.operation), positional, named);
    if (result->type()->kind() != c10::TypeKind::TupleType) return {result};
    const auto parts = graph_->insertNode(graph_->createTupleUnpack(result))->outputs();
    return {parts.begin(), parts.end()};
  }

  // `type`: what the schema wants, or null.
  Value* value_of(const Argument& argument, c10::TypePtr type, const Call& call) {
    while (type && type->kind() == c10::TypeKind::OptionalType) type = type->containedType(0);
    if (const auto* reference = std::get_if<Reference>(&argument.value)) {
      Value* value = find(reference->name, call.where);
      const auto kind = value->type()->kind();
      const bool number = kind == c10::TypeKind::IntType || kind == c10::TypeKind::FloatType;
      if (number && wants(type, c10::TypeKind::TensorType)) throw WantsNumber{};
      return value;
    }
    if (const auto* items = std::get_if<std::vector<Argument>>(&argument.value)) return list_of(*items, type, call);
    if (const auto* number = std::get_if<std::int64_t>(&argument.value)) {
      if (wants(type, c10::TypeKind::TensorType)) throw WantsNumber{};
      return graph_->insertConstant(wants(type, c10::TypeKind::FloatType) ? at::IValue(static_cast<double>(*number))
                                                                          : at::IValue(*number));
    }
    if (const auto* number = std::get_if<double>(&argument.value)) {
      if (wants(type, c10::TypeKind::TensorType)) throw WantsNumber{};
      return graph_->insertConstant(*number);
    }
    if (const auto* truth = std::get_if<bool>(&argument.value)) return graph_->insertConstant(*truth);
    if (const auto* word = std::get_if<std::string>(&argument.value)) return graph_->insertConstant(*word);
    if (const auto* element = std::get_if<ElementType>(&argument.value))
      return graph_->insertConstant(static_cast<std::int64_t>(to_tensor({*element, {0}, {}}).scalar_type()));
    if (std::holds_alternative<OwnDevice>(argument.value)) return graph_->insertConstant(device_);
    return graph_->insertConstant(at::IValue());
  }

  static bool wants(const c10::TypePtr& type, c10::TypeKind kind) { return type && type->kind() == kind; }

  Value* list_of(const std::vector<Argument>& items, const c10::TypePtr& type, const Call& call) {
    c10::TypePtr element = wants(type, c10::TypeKind::ListType) ? type->containedType(0) : nullptr;
    std::vector<Value*> values;
    for (const Argument& item : items) {
      values.push_back(value_of(item, element, call));
    }
    if (!element) element = values.empty() ? c10::TypePtr(c10::IntType::get()) : values.front()->type();
    if (element->kind() == c10::TypeKind::TensorType) element = c10::TensorType::get();
    return graph_->insertNode(graph_->createList(element, values))->output();
  }

  Value* result() {
    std::vector<Value*> values, keys;
    for (const Output& output : program_.outputs) {
      Value* value = find(output.name, "its result");
      if (value->type()->kind() != c10::TypeKind::TensorType)
        input_error("{}: its result {} is no tensor", program_.path, output.name);
      values.push_back(value);
      if (!output.key.empty()) keys.push_back(graph_->insertConstant(output.key));
    }
    if (keys.size() == values.size())
      return graph_->insertNode(graph_->createDict(c10::StringType::get(), c10::TensorType::get(), keys, values))->output();
    if (values.size() == 1) return values.front();
    return graph_->insertNode(graph_->createTuple(values))->output();
  }

  Program program_;
  at::Device device_;
  std::shared_ptr<Graph> graph_;
  std::unordered_map<std::string, Value*> values_;
};

}  // namespace

std::shared_ptr<Graph> make_graph(Program program, at::Device device) {
  return GraphMaker(std::move(program), device).make();
}

}  // namespace holdfast::model::program
