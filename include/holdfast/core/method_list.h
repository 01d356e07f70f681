// The list of a stage's methods, one line each. Only the register.cpp of a stage includes this.
//
// A method's file keeps its names in a namespace of its own and ends with the function that adds the method:
//     namespace holdfast::metric::top_k {
//     ...
//     void add_to(Registry<Metric>& registry) {
//       registry.add<TopK>(kInfo);
//     }
//     }  // namespace holdfast::metric::top_k
// The list in register.cpp is a macro that names these namespaces, METHOD(Metric, top_k), in the order in which `holdfast list`
// shows the methods. HOLDFAST_REGISTRY(Metric, metrics, "metric", HOLDFAST_METRICS) makes the registry from the list.
#pragma once

#include "holdfast/core/registry.h"

// Defines `const Registry<Product>& function()`, which holds the methods of the list, and `function_to_extend()` for methods that
// are not built in.
#define HOLDFAST_REGISTRY(Product, function, kind, METHODS) \
  METHODS(HOLDFAST_DECLARE_METHOD)                          \
  Registry<Product>& function##_to_extend() {               \
    static Registry<Product> all = [] {                     \
      Registry<Product> registry(kind);                     \
      METHODS(HOLDFAST_ADD_METHOD)                          \
      return registry;                                      \
    }();                                                    \
    return all;                                             \
  }                                                         \
  const Registry<Product>& function() {                     \
    return function##_to_extend();                          \
  }
#define HOLDFAST_DECLARE_METHOD(Product, name) \
  namespace name {                             \
  void add_to(Registry<Product>& registry);    \
  }
#define HOLDFAST_ADD_METHOD(Product, name) name::add_to(registry);
