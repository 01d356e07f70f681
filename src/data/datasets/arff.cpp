#include "arff.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"

namespace holdfast::data {

CsvTable parse_arff(std::string text, const std::vector<std::string>& names, const std::string& path) {
  std::string small = text;  // ARFF's keywords may have capitals
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t found = small.find("\n@data\n");
  if (found == std::string::npos) input_error("{} has no line @data; expected Weka's file of that name", path);
  const std::size_t rows = text.find('\n', found + 1);
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(rows), '\n');
  text.replace(0, rows, std::string(static_cast<std::size_t>(lines), '\n'));
  std::ranges::replace(text, '\'', '"');
  CsvTable csv = parse_csv(text, {.header = false}, path);
  if (csv.rows.empty()) input_error("{} has no rows", path);
  csv.names = names;
  if (csv.rows[0].size() != csv.names.size())
    input_error("{}:{}: {} fields, expected {}", path, csv.lines[0], csv.rows[0].size(), csv.names.size());
  return csv;
}

CsvTable read_arff(const std::string& path, const std::vector<std::string>& names) {
  return parse_arff(read_text(path), names, path);
}

}  // namespace holdfast::data
