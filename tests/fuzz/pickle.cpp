#include "../../src/model/torchscript/pickle.h"

#include "fuzz.h"

using namespace holdfast::model;

// The first byte says what the pickle is for. Every record has 72 bytes but those of keys that start with x.
void holdfast::fuzz_pickle(std::span<const std::byte> input) {
  if (input.empty()) input_error("nothing to read");
  const auto kind = static_cast<torchscript::PickleKind>(std::to_integer<int>(input.front()) % 3);
  torchscript::check_pickle(input.subspan(1), "input", kind, [](const std::string& key) {
    return key.starts_with('x') ? std::nullopt : std::optional<std::uint64_t>(72);
  });
}
