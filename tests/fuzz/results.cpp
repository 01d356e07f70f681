// results.json of a run as tables and junit.xml are made of it. The manifest and the arrays' descriptions are read the same way.
#include "holdfast/report/junit.h"
#include "holdfast/report/text_table.h"

#include "fuzz.h"

using namespace holdfast::report;

void holdfast::fuzz_results(std::span<const std::byte> input) {
  const Json results = parse_json(std::string(as_text(input)), "input");
  try {
    (void)row_warnings(results);
    (void)results_table(results);
    (void)junit_xml(results);
  } catch (const Json::exception& error) {
    input_error("{}", error.what());  // what main makes of it: wrong_json_sentence
  }
}
