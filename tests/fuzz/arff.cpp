#include "../../src/data/datasets/arff.h"
#include "fuzz.h"

using namespace holdfast::data;

void holdfast::fuzz_arff(std::span<const std::byte> input) {
  const std::vector<std::string> names{"age", "class"};
  const CsvTable table = parse_arff(std::string(as_text(input)), names, "input");
  require(table.names == names && table.lines.size() == table.rows.size());
  for (const auto& row : table.rows) require(row.size() == names.size());
}
