// Weka's files: the rows behind @data, with ARFF's quotes made those of CSV.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/csv.h"
#include "holdfast/core/stages.h"

namespace holdfast::data {

// Columns are called `names`. Lines before the rows are emptied rather than removed, so that messages name the right line. Throws
// kInput: no @data, no rows, another number of fields.
CsvTable parse_arff(std::string text, const std::vector<std::string>& names, const std::string& path);
CsvTable read_arff(const std::string& path, const std::vector<std::string>& names);

}  // namespace holdfast::data
