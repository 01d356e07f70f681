#include "holdfast/core/csv.h"

#include <algorithm>
#include <optional>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/method.h"
#include "holdfast/core/printable.h"

namespace holdfast {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Walks the text once, a row at a time, and counts lines as it goes: a quoted field may span several.
class CsvReader {
 public:
  CsvReader(std::string_view text, const CsvOptions& options, const std::string& where)
      : text_(text), options_(options), where_(where) {
    if (text_.starts_with(kByteOrderMark)) place_ = kByteOrderMark.size();
  }

  // Reads the next row that is not empty, or nothing at the end.
  std::optional<std::vector<std::string>> next_row() {
    while (place_ < text_.size()) {
      row_line_ = line_;
      if (skip_empty_line()) continue;
      std::vector<std::string> fields;
      while (true) {
        fields.push_back(next_field());
        if (!take(options_.separator)) break;
      }
      take_line_end();
      return fields;
    }
    return std::nullopt;
  }

  std::int64_t row_line() const { return row_line_; }

 private:
  bool at_line_end() const { return place_ >= text_.size() || text_[place_] == '\n' || text_.substr(place_, 2) == "\r\n"; }

  bool take(char letter) {
    if (place_ >= text_.size() || text_[place_] != letter) return false;
    ++place_;
    return true;
  }

  void take_line_end() {
    take('\r');
    if (take('\n')) ++line_;
  }

  bool skip_empty_line() {
    const std::string_view line = text_.substr(place_, text_.find('\n', place_) - place_);
    const std::string_view content = options_.trim ? trimmed(line) : line;
    // A line of separators alone is a row of empty fields, also when the separator is itself a blank.
    const bool separated = line.find(options_.separator) != std::string_view::npos;
    if (separated || !(content.empty() || content == "\r")) return false;
    place_ += line.size();
    take_line_end();
    return true;
  }

  std::string next_field() {
    const std::size_t start = place_;
    if (options_.trim) skip_blanks();
    if (take('"')) return quoted_field();
    place_ = start;
    while (!at_line_end() && text_[place_] != options_.separator) ++place_;
    const std::string_view field = text_.substr(start, place_ - start);
    return std::string(options_.trim ? trimmed(field) : field);
  }

  // Reads the rest of a field whose opening quote was taken.
  std::string quoted_field() {
    const std::int64_t opened = line_;
    std::string field;
    while (true) {
      if (place_ >= text_.size()) input_error("{}:{}: a quote is opened here and never closed", where_, opened);
      const char letter = text_[place_++];
      if (letter == '"' && !take('"')) break;
      if (letter == '\n') ++line_;
      field += letter;
    }
    if (options_.trim) skip_blanks();
    if (!at_line_end() && text_[place_] != options_.separator) {
      input_error("{}:{}: text follows the closing quote of a field; write a quote inside quotes as \"\"", where_, line_);
    }
    return field;
  }

  void skip_blanks() {
    while (!at_line_end() && is_blank(text_[place_]) && text_[place_] != options_.separator) ++place_;
  }

  std::string_view text_;
  const CsvOptions& options_;
  const std::string& where_;
  std::size_t place_ = 0;
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
};

void refuse_what_is_no_text(std::string_view text, const std::string& where) {
  const auto line_of = [&](std::size_t place) {
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n');
  };
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    input_error("{}:{}: a NUL byte; this is not a text table", where, line_of(nul));
  if (const std::size_t wrong = first_invalid_utf8(text); wrong < text.size())
    input_error("{}:{}: a character that is not UTF-8; save the table as UTF-8", where, line_of(wrong));
}

// Beside what RFC 4180 asks for: blanks at the ends would be trimmed, a lone empty field would be an empty line, and a
// byte order mark at the start of a file is none of its text.
bool needs_quotes(std::string_view field, bool alone) {
  if (field.empty()) return alone;
  return field.find_first_of(",\"\r\n") != std::string_view::npos || is_blank(field.front()) || is_blank(field.back()) ||
         field.starts_with(kByteOrderMark);
}

}  // namespace

std::size_t CsvTable::column(const std::string& name, const std::string& where) const {
  if (const auto known = places.find(name); known != places.end()) return known->second;
  const auto found = std::find(names.begin(), names.end(), name);  // of tables whose names were set by hand
  if (found == names.end()) input_error("{}: no column '{}'{}", where, name, suggestion(name, names));
  return static_cast<std::size_t>(found - names.begin());
}

CsvTable parse_csv(std::string_view text, const CsvOptions& options, const std::string& where) {
  HOLDFAST_CHECK(options.separator != '"' && options.separator != '\n' && options.separator != '\r');
  refuse_what_is_no_text(text, where);
  CsvReader reader(text, options, where);
  CsvTable table;
  if (options.header) {
    auto names = reader.next_row();
    if (!names) input_error("{}: the file is empty; a line of column names was expected", where);
    table.names = std::move(*names);
    for (std::size_t i = 0; i < table.names.size(); ++i) table.places.emplace(table.names[i], i);  // the first of a name stays
  }
  while (auto row = reader.next_row()) {
    const std::size_t expected = options.header       ? table.names.size()
                                 : table.rows.empty() ? row->size()
                                                      : table.rows.front().size();
    if (row->size() != expected) {
      input_error("{}:{}: the row has {} fields, the {} has {}", where, reader.row_line(), row->size(),
                  options.header ? "header" : "first row", expected);
    }
    table.rows.push_back(std::move(*row));
    table.lines.push_back(reader.row_line());
  }
  return table;
}

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(read_text(path), options, path);
}

std::string format_csv_row(const std::vector<std::string>& fields) {
  std::string row;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) row += ',';
    if (!needs_quotes(field, fields.size() == 1)) {
      row += valid_utf8(field);
      continue;
    }
    row += '"';
    for (const char letter : valid_utf8(field)) {
      if (letter == '"') row += '"';
      row += letter;
    }
    row += '"';
  }
  return row + '\n';
}

}  // namespace holdfast
