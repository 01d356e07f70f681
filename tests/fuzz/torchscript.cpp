#include "../../src/model/torchscript/archive.h"
#include "fuzz.h"

using namespace holdfast::model;

void holdfast::fuzz_torchscript(std::span<const std::byte> input) {
  const auto archive = torchscript::Archive::check({input.begin(), input.end()}, "input");
  require(archive.has("data.pkl") && archive.has("constants.pkl"));
  for (const auto& [name, text] : archive.sources()) require(name.ends_with(".py") && text.size() <= (std::size_t{256} << 20));
}
