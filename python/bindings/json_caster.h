// JSON comes to Python as dictionaries, lists, texts and numbers; what is not finite as None, as in files.
#pragma once

#include <cmath>

#include <torch/csrc/utils/pybind.h>

#include "holdfast/core/json.h"

namespace pybind11::detail {

template <>
struct type_caster<holdfast::Json> {
  PYBIND11_TYPE_CASTER(holdfast::Json, const_name("object"));

  static handle cast(const holdfast::Json& json, return_value_policy, handle) { return made(json).release(); }

 private:
  static object made(const holdfast::Json& json) {
    switch (json.type()) {
      case holdfast::Json::value_t::boolean:
        return bool_(json.get<bool>());
      case holdfast::Json::value_t::number_integer:
        return int_(json.get<std::int64_t>());
      case holdfast::Json::value_t::number_unsigned:
        return int_(json.get<std::uint64_t>());
      case holdfast::Json::value_t::number_float: {
        const double number = json.get<double>();
        return std::isfinite(number) ? object(float_(number)) : object(none());
      }
      case holdfast::Json::value_t::string:
        return str(json.get_ref<const std::string&>());
      case holdfast::Json::value_t::array: {
        list all(json.size());
        for (std::size_t i = 0; i < json.size(); ++i) all[i] = made(json[i]);
        return all;
      }
      case holdfast::Json::value_t::object: {
        dict all;
        for (const auto& [key, value] : json.items()) all[str(key)] = made(value);
        return all;
      }
      default:
        return none();
    }
  }
};

}  // namespace pybind11::detail
