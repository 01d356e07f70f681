// Separated text tables: RFC 4180 quoting, any separator, spaces around fields trimmed when asked, CRLF or LF.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace holdfast {

struct CsvOptions {
  char separator = ',';
  bool header = true;
  bool trim = true;
};

struct CsvTable {
  std::vector<std::string> names;                            // empty without a header
  std::vector<std::vector<std::string>> rows;                // all as long as each other
  std::vector<std::int64_t> lines;                           // the file's line on which each row starts
  std::unordered_map<std::string, std::size_t> places = {};  // of the columns by name, where the file has names

  // Position of a column by name, the first one when it appears twice; throws kInput with the nearest name.
  std::size_t column(const std::string& name, const std::string& where) const;
};

// Throws kInput naming `where` and the line: a row too long or short, a quote never closed, a NUL byte.
CsvTable parse_csv(std::string_view text, const CsvOptions& options, const std::string& where);
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

// One row with its newline; fields are quoted where they must be.
std::string format_csv_row(const std::vector<std::string>& fields);

}  // namespace holdfast
