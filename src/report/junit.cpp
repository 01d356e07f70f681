#include "holdfast/report/junit.h"

#include <fmt/format.h>

#include "holdfast/core/printable.h"
#include "holdfast/report/text_table.h"
#include "whole_number.h"

namespace holdfast::report {
namespace {

// XML has no way to write most control characters: they become the replacement character. Blanks other than spaces would be
// turned into spaces in an attribute unless they are written as numbers.
std::string escape_control(char letter) {
  if (letter == '\t' || letter == '\n' || letter == '\r') return fmt::format("&#{};", static_cast<int>(letter));
  return "\xef\xbf\xbd";
}

std::string escape_xml(const std::string& text) {
  std::string result;
  for (const char letter : printable(text, /*lines=*/true)) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(letter) < 0x20 ? escape_control(letter) : std::string(1, letter);
    }
  }
  return result;
}

// Writes as many digits as it takes to see that it is not the limit, four at least.
std::string apart_from(double value, double limit) {
  int digits = 4;
  while (digits < 17 && value != limit && fixed(value, digits) == fixed(limit, digits)) ++digits;
  return fixed(value, digits);
}

}  // namespace

std::string missed_row(const Json& results, const Json& gate, const Json& gate_row) {
  const bool of_measure = gate_row.contains("measure");
  const Json& row = of_measure ? results.at("measures").at(static_cast<std::size_t>(whole_number(gate_row.at("measure"))))
                               : results.at("rows").at(static_cast<std::size_t>(whole_number(gate_row.at("row"))));
  const Json& value = gate_row.at("value");
  return fmt::format("{}, {}, {}{}: {}", row.at("model").get<std::string>(), row.at("explainer").get<std::string>(),
                     row.at(of_measure ? "measure" : "attack").get<std::string>(),
                     of_measure ? "" : epsilon_words(results.at("rows"), row),
                     value.is_null() ? "undefined" : apart_from(value, gate.at("limit")));
}

std::string junit_xml(const Json& results) {
  const Json& gates = results.at("gates");
  const std::string suite = results.value("title", "holdfast");
  std::size_t failures = 0;
  std::string cases;
  for (const Json& gate : gates) {
    const std::string name = escape_xml(gate.at("gate"));
    if (gate.at("met").get<bool>()) {
      cases += fmt::format("    <testcase classname=\"holdfast\" name=\"{}\"/>\n", name);
      continue;
    }
    ++failures;
    std::string values;
    for (const Json& row : gate.at("rows")) {
      if (row.at("met").get<bool>()) continue;
      values += fmt::format("{}{}", values.empty() ? "" : ", ", missed_row(results, gate, row));
    }
    cases += fmt::format(
        "    <testcase classname=\"holdfast\" name=\"{}\">\n      <failure message=\"not met: {}\"/>\n    </testcase>\n", name,
        escape_xml(values));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{}  "
      "</testsuite>\n</testsuites>\n",
      escape_xml(suite), gates.size(), failures, cases);
}

}  // namespace holdfast::report
