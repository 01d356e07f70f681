// Tables for the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "holdfast/core/json.h"
#include "holdfast/core/stages.h"

namespace holdfast::report {

// "0.7100"; what rounds to zero has no sign.
std::string fixed(double value, int digits);

// Shares of clean and of perturbed maps: "16 %", or "16 %, 100 %" where they differ.
std::string tied_cell(double clean, double perturbed);

// Columns padded to their widest cell (in characters, not bytes); columns of numbers are aligned to the right.
std::string text_table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

// The same with the last column's sentences in lines of their own, where the table would be wider than `width` characters.
std::string listing(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows, std::size_t width);

// A table for `width` characters: columns with the largest `drop` are left out first, those with 0 never, and a line says which.
// Width 0: all of them.
struct TableColumn {
  std::string name;
  std::vector<std::string> cells = {};
  int drop = 0;
  bool is_value = false;  // no name: it does not tell rows apart
};
// Long texts are cut in the middle, so that different ones stay different, before a column goes that says how to read a value.
std::string fitted_table(std::vector<TableColumn> columns, std::size_t width);

// The text in lines of at most `width` characters, broken between words, the later ones indented. Width 0: one line.
std::string wrapped(const std::string& text, std::size_t width);

// Whether a row of results.json is worse for the defender than another of the same metric; one that is not defined is not.
bool is_worse(const Json& row, const Json& other);

// Whether some dataset of these rows of results.json was attacked with more than one; and ", epsilon 0.5" of a row where so.
bool has_several_epsilons(const Json& rows);
std::string epsilon_words(const Json& rows, const Json& row);

// Who found what in ensembles, what it cost, and whether more work would find more: of rows of results.json, or result.json of an
// attack; columns that tell rows apart where there are several. Empty when none is an ensemble.
std::string components_table(const Json& rows);

// What must not be read as robustness in results.json, a sentence each.
std::vector<std::string> row_warnings(const Json& results);

// results.json as the tables that `audit` prints: values with interval and levels, top sets; measures; models
// compared; then a sentence for each model, and the gates. Width 0: every column, and who found what in ensembles.
std::string results_table(const Json& results, std::size_t width = 0);

}  // namespace holdfast::report
