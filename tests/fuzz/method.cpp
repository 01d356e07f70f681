#include "holdfast/core/method.h"

#include "fuzz.h"

void holdfast::fuzz_method(std::span<const std::byte> input) {
  static const MethodInfo kInfo{.name = "er",
                                .summary = "an example",
                                .options = {{"steps", 100, at_least(1), "iterations"},
                                            {"step_size", 0.01, above(0), "length of a step"},
                                            {"pairs", "all", one_of({"all", "next-k"}), "which pairs"},
                                            {"layers", "", anything(), "sizes"},
                                            {"of", "", anything(), "a call"},
                                            {"signed", false, anything(), "keep signs"}},
                                .presets = {{"tabular", {{"steps", std::int64_t{1000}}}, "as published"}}};
  const MethodCall call = parse_method_call(as_text(input));
  const Options options(kInfo, call);
  // What a method is called in results means the same method again.
  const Options again(kInfo, parse_method_call(options.canonical()));
  require(again.canonical() == options.canonical() && again.complete() == options.complete());
  for (const std::int64_t size : parse_sizes(options.word("layers"), "layers")) require(size > 0);
}
