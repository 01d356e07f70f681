#include "holdfast/core/csv.h"

#include "fuzz.h"

void holdfast::fuzz_csv(std::span<const std::byte> input) {
  const std::string_view text = as_text(input);
  const CsvTable table = parse_csv(text, {}, "input");
  require(table.lines.size() == table.rows.size());
  std::string written = format_csv_row(table.names);
  for (const auto& row : table.rows) {
    require(row.size() == table.names.size());
    written += format_csv_row(row);
  }
  const CsvTable again = parse_csv(written, {}, "written");
  require(again.names == table.names && again.rows == table.rows);
  try {
    parse_csv(text, {.separator = ';', .header = false, .trim = false}, "input");
  } catch (const Error&) {  // rows that agree with commas need not agree with semicolons
  }
}
