#include "../../src/model/exported/read.h"
#include "fuzz.h"

using namespace holdfast::model;

void holdfast::fuzz_exported(std::span<const std::byte> input) {
  const auto program = exported::read_program({input.begin(), input.end()}, "input");
  require(!program.outputs.empty());
  for (const auto& constant : program.constants) {
    require(constant.array.bytes.size() == static_cast<std::size_t>(constant.array.count()) * size_of(constant.array.type));
  }
}
