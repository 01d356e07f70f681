// A table of Weka's examples: one ARFF file, whose last column is the class.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tables.h"

namespace holdfast::data {

class WekaTable final : public DatasetLoader {
 public:
  // `columns` in the file's order, `classes` the levels of the last one.
  WekaTable(Source source, std::vector<TableColumn> columns, std::vector<std::string> classes, const Options& options)
      : source_(std::move(source)), columns_(std::move(columns)), classes_(std::move(classes)), encoding_(encoding_of(options)) {}

  Source source() const override { return source_; }
  Dataset load(const LoadContext& context) const override;

 private:
  Source source_;
  std::vector<TableColumn> columns_;
  std::vector<std::string> classes_;
  Encoding encoding_;
};

// The source of a file that Debian's package weka has; the folder has the dataset's name.
Source weka_source(const std::string& folder, const std::string& file, const std::string& sha256, const std::string& licence,
                   const std::string& homepage);

}  // namespace holdfast::data
