// The arguments of one operation in a graph.
#include "holdfast/core/error.h"
#include "import.h"

namespace holdfast::model::torchscript {
namespace {

// A number, as an option or as a tensor of one element (tracing makes them of Python's numbers).
at::Scalar as_scalar(const Symbol& symbol, const OperatorCall& call) {
  if (const auto* known = std::get_if<Known>(&symbol.is)) {
    if (known->value.isScalar()) return known->value.toScalar();
    if (known->value.isTensor() && known->value.toTensor().numel() == 1) return known->value.toTensor().item();
  }
  if (std::holds_alternative<BatchSize>(symbol.is)) call.refuse("depends on the number of samples");
  call.refuse("has an option that is not a constant");
}

}  // namespace

std::int64_t as_integer(const Symbol& symbol, const OperatorCall& call) {
  return as_scalar(symbol, call).toLong();
}

const Symbol& OperatorCall::symbol(const char* argument) const {
  if (!has(argument)) refuse(fmt::format("has no '{}', as the known form has", argument));
  return importer_.symbol(node_->namedInput(argument));
}

bool OperatorCall::is_tensor(const char* argument) const {
  return std::holds_alternative<Tracked>(symbol(argument).is);
}

bool OperatorCall::is_none(const char* argument) const {
  const auto* known = std::get_if<Known>(&symbol(argument).is);
  return known != nullptr && known->value.isNone();
}

const Tracked& OperatorCall::tracked(const char* argument) const {
  const auto* tracked = std::get_if<Tracked>(&symbol(argument).is);
  if (tracked == nullptr) refuse(fmt::format("has '{}' that does not come from the input", argument));
  return *tracked;
}

int OperatorCall::tensor(const char* argument) const {
  return tracked(argument).slot->node;
}

at::Tensor OperatorCall::constant(const char* argument) const {
  const auto* known = std::get_if<Known>(&symbol(argument).is);
  if (known == nullptr) refuse(fmt::format("has '{}' that is not a constant", argument));
  if (known->from_shape) importer_.set_depends_on_shape();
  if (known->value.isNone()) return {};
  if (known->value.isTensor()) return known->value.toTensor().detach();
  return at::scalar_tensor(as_scalar(symbol(argument), *this), importer_.options());
}

std::int64_t OperatorCall::integer(const char* argument) const {
  const auto* known = std::get_if<Known>(&symbol(argument).is);
  if (known != nullptr && known->from_shape) importer_.set_depends_on_shape();
  return as_integer(symbol(argument), *this);
}

double OperatorCall::real(const char* argument) const {
  return as_scalar(symbol(argument), *this).toDouble();
}

bool OperatorCall::flag(const char* argument) const {
  return as_scalar(symbol(argument), *this).toBool();
}

std::string OperatorCall::text(const char* argument) const {
  const auto* known = std::get_if<Known>(&symbol(argument).is);
  if (known == nullptr || !known->value.isString()) refuse(fmt::format("has '{}' that is not a constant word", argument));
  return known->value.toStringRef();
}

std::vector<std::int64_t> OperatorCall::integers(const char* argument) const {
  const Symbol& list = symbol(argument);
  if (const auto* sequence = std::get_if<Sequence>(&list.is)) {
    std::vector<std::int64_t> result;
    for (const Symbol& item : sequence->items) {
      const auto* known = std::get_if<Known>(&item.is);
      if (known != nullptr && known->from_shape) importer_.set_depends_on_shape();
      result.push_back(as_integer(item, *this));
    }
    return result;
  }
  const auto* known = std::get_if<Known>(&list.is);
  if (known != nullptr && known->value.isIntList()) {
    if (known->from_shape) importer_.set_depends_on_shape();
    return known->value.toIntVector();
  }
  return {integer(argument)};
}

std::int64_t OperatorCall::dimension(const char* argument, const char* of) const {
  const auto rank = static_cast<std::int64_t>(shape(of).size());
  const std::int64_t dim = integer(argument);
  const std::int64_t from_front = dim < 0 ? dim + rank : dim;
  if (from_front == 0) refuse("works across the samples of a batch");
  if (from_front < 0 || from_front >= rank) misfit("names a dimension that is not there");
  return from_front;
}

std::string OperatorCall::owner(const char* weight) const {
  if (!has(weight)) return {};
  const std::string name = node_->namedInput(weight)->debugName();
  const std::size_t end = name.find(".weight");
  if (end == std::string::npos || !name.starts_with("self.") || end <= 5) return {};
  return name.substr(5, end - 5);
}

std::string OperatorCall::sentence(const std::string& why) const {
  const std::string place = place_of(node_);
  return fmt::format("operation {}{} {}", node_->kind().toQualString(), place.empty() ? "" : " at " + place, why);
}

void OperatorCall::refuse(const std::string& why) const {
  throw NotReadable(sentence(why));
}

void OperatorCall::misfit(const std::string& why) const {
  throw DoesNotFit(sentence(why));
}

}  // namespace holdfast::model::torchscript
