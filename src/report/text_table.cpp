#include "holdfast/report/text_table.h"

#include <algorithm>
#include <cctype>
#include <ranges>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "holdfast/core/printable.h"

namespace holdfast::report {
namespace {

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

bool looks_like_number(const std::string& text) {
  return text.empty() || text == "-" || std::isdigit(static_cast<unsigned char>(text.front())) ||
         (text.front() == '-' && text.size() > 1);
}

std::string pad(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - characters(text), ' ');
  return right ? space + text : text + space;
}

// The words of a cell in lines of at most so many characters.
std::vector<std::string> cell_lines(const std::string& text, std::size_t most) {
  std::vector<std::string> lines{""};
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    if (!lines.back().empty() && characters(lines.back()) + 1 + characters(word) > most) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    from = to + 1;
  }
  return lines;
}

}  // namespace

std::string listing(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                    std::size_t width) {
  constexpr std::size_t kNarrowest = 24;  // a last column in which sentences can be read
  std::size_t before = 0;
  for (std::size_t column = 0; column + 1 < header.size(); ++column) {
    std::size_t most = characters(header[column]);
    for (const std::vector<std::string>& row : rows) most = std::max(most, characters(row[column]));
    before += most + 2;
  }
  if (width < before + kNarrowest) return text_table(header, rows);
  std::vector<std::vector<std::string>> lines;
  for (const std::vector<std::string>& row : rows) {
    std::vector<std::string> cells = row;
    for (const std::string& line : cell_lines(printable(row.back()), width - before)) {
      cells.back() = line;
      lines.push_back(cells);
      std::fill(cells.begin(), cells.end(), "");
    }
  }
  return text_table(header, lines);
}

std::string text_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& given) {
  // Names may hold anything; a cell is one line.
  std::vector<std::vector<std::string>> rows = given;
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  std::vector<std::size_t> width;
  std::vector<bool> right;
  for (std::size_t column = 0; column < header.size(); ++column) {
    width.push_back(characters(header[column]));
    bool numbers = !rows.empty();
    for (const std::vector<std::string>& row : rows) {
      width[column] = std::max(width[column], characters(row[column]));
      numbers = numbers && looks_like_number(row[column]);
    }
    right.push_back(numbers);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string result;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) result += "  ";
      result += pad(cells[column], width[column], right[column]);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    text += result + '\n';
  };
  line(header);
  std::vector<std::string> rule;
  for (const std::size_t columns : width) {
    std::string dashes;
    for (std::size_t i = 0; i < columns; ++i) dashes += "─";
    rule.push_back(dashes);
  }
  line(rule);
  for (const std::vector<std::string>& row : rows) line(row);
  return text;
}

namespace {

// Texts are cut to so many characters before a column goes that says how to read the value, and to fewer where nothing else
// helps.
constexpr std::size_t kReadableCell = 12, kLeastCell = 8;
constexpr int kLastToDrop = 4;  // columns with a larger number go before any text is cut

bool is_text(const TableColumn& column) {
  return std::ranges::any_of(column.cells, [](const std::string& cell) { return !looks_like_number(cell); });
}

// The text with its middle left out, in so many characters.
std::string cut(const std::string& text, std::size_t most) {
  if (characters(text) <= most) return text;
  const auto part = [&](std::size_t from, std::size_t count) {
    std::string result;
    std::size_t at = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i > 0 && (text[i] & 0xC0) != 0x80) ++at;
      if (at >= from && at < from + count) result += text[i];
    }
    return result;
  };
  const std::size_t tail = (most - 1) / 2, head = most - 1 - tail;
  return part(0, head) + "…" + part(characters(text) - tail, tail);
}

// Cuts the cells of a column to so many characters, or as many more as keep different ones different.
void cut_cells(TableColumn& column, std::size_t most) {
  const std::set<std::string> before(column.cells.begin(), column.cells.end());
  for (;; ++most) {
    std::set<std::string> after;
    for (const std::string& cell : before) after.insert(cut(cell, most));
    if (after.size() == before.size()) break;
  }
  for (std::string& cell : column.cells) cell = cut(cell, most);
}

std::size_t width_of(const TableColumn& column) {
  std::size_t most = characters(column.name);
  for (const std::string& cell : column.cells) most = std::max(most, characters(cell));
  return most;
}

std::size_t width_of(const std::vector<TableColumn>& columns) {
  std::size_t sum = 0;
  for (const TableColumn& column : columns) sum += width_of(column) + 2;
  return sum < 2 ? 0 : sum - 2;
}

// Cuts the widest texts first, character by character, down to `least`: no text gives way to one that is longer.
std::vector<TableColumn> narrowed(const std::vector<TableColumn>& given, std::size_t width, std::size_t least) {
  std::vector<TableColumn> columns = given;
  std::vector<std::size_t> most, texts;
  for (std::size_t i = 0; i < given.size(); ++i) {
    most.push_back(width_of(given[i]));
    if (is_text(given[i]) && most[i] > least) texts.push_back(i);
  }
  while (width_of(columns) > width && !texts.empty()) {
    const std::size_t widest = *std::ranges::max_element(texts, {}, [&](std::size_t i) { return most[i]; });
    columns[widest] = given[widest];
    cut_cells(columns[widest], --most[widest]);
    if (most[widest] <= least) std::erase(texts, widest);
  }
  return columns;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width) {
  constexpr std::size_t kNarrowest = 40;  // below it a line is no longer readable anyway
  if (width < kNarrowest) return text + "\n";
  const std::string indent(std::min(text.find_first_not_of(' '), text.size()), ' ');
  std::string result;
  for (const std::string& line : cell_lines(text.substr(indent.size()), width - indent.size() - 2))
    result += indent + (result.empty() ? "" : "  ") + line + "\n";
  return result;
}

std::string fitted_table(std::vector<TableColumn> columns, std::size_t width) {
  std::vector<std::string> dropped;
  while (width > 0 && width_of(columns) > width) {
    const auto first = std::ranges::max_element(columns, {}, &TableColumn::drop);
    if (first->drop <= kLastToDrop) {
      std::vector<TableColumn> cut = narrowed(columns, width, kReadableCell);
      if (first->drop == 0) cut = narrowed(columns, width, kLeastCell);  // what is left tells rows apart
      if (first->drop == 0 || width_of(cut) <= width) {
        columns = std::move(cut);
        break;
      }
    }
    dropped.push_back(first->name);
    columns.erase(first);
  }
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows(columns.empty() ? 0 : columns.front().cells.size());
  for (const TableColumn& column : columns) {
    header.push_back(column.name);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(column.cells[i]);
  }
  std::string text = text_table(header, rows);
  if (!dropped.empty())
    text += wrapped(fmt::format("left out for the width: {}; --wide shows all", fmt::join(dropped, ", ")), width);
  return text;
}

}  // namespace holdfast::report
