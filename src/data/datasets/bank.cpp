// UCI Bank Marketing (bank-additional-full): does a client subscribe to a term deposit after a telephone campaign?
// Every column is used with the levels it has, "unknown" among them: 10 numbers and 53 one-hot columns. `pdays` is 999 for
// clients never contacted before, as in the file.
#include "holdfast/data/dataset.h"
#include "tables.h"

namespace holdfast::data::bank {

const MethodInfo kInfo{
    .name = "bank",
    .summary = "telephone marketing: subscribes to a term deposit or not (UCI Bank Marketing)",
    .citation =
        "Moro, Cortez and Rita, A data-driven approach to predict the success of bank telemarketing, Decision Support Systems "
        "62, 2014",
    .options = table_options({{"duration", true, anything(), "use the call's duration, which is known only after the call"}}),
    .notes = "41,188 rows, 63 features; without duration 62"};

const std::vector<std::string> kUnknownNoYes = {"no", "yes", "unknown"};

class Bank final : public DatasetLoader {
 public:
  explicit Bank(const Options& options) : encoding_(encoding_of(options)), with_duration_(options.flag("duration")) {}

  Source source() const override {
    return {.folder = "bank",
            .files = {{.path = "bank-additional-full.csv",
                       .sha256 = {"74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8"},
                       .url = "https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank-additional.zip",
                       .member = "bank-additional/bank-additional-full.csv"}},
            .licence = "CC BY 4.0",
            .homepage = "https://archive.ics.uci.edu/dataset/222/bank+marketing"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string path = require_source(kInfo.name, source(), context.folder) + "/bank-additional-full.csv";
    const CsvTable csv = read_csv(path, {.separator = ';'});
    if (csv.rows.empty()) input_error("{} has no rows", path);
    const ColumnReader reader(csv, path);
    const Column labels = reader.categorical("y", {"no", "yes"});
    return table_dataset(columns(reader), labels, stratified_split(labels.codes, context.seed), encoding_);
  }

 private:
  Table columns(const ColumnReader& read) const {
    Table table;
    for (const char* name : {"age", "duration", "campaign", "pdays", "previous", "emp.var.rate", "cons.price.idx",
                             "cons.conf.idx", "euribor3m", "nr.employed"}) {
      if (with_duration_ || std::string_view(name) != "duration") table.push_back(read.numeric(name));
    }
    table.push_back(read.categorical("job", {"admin.", "blue-collar", "entrepreneur", "housemaid", "management", "retired",
                                             "self-employed", "services", "student", "technician", "unemployed", "unknown"}));
    table.push_back(read.categorical("marital", {"divorced", "married", "single", "unknown"}));
    table.push_back(read.categorical("education", {"illiterate", "basic.4y", "basic.6y", "basic.9y", "high.school",
                                                   "professional.course", "university.degree", "unknown"}));
    for (const char* name : {"default", "housing", "loan"}) table.push_back(read.categorical(name, kUnknownNoYes));
    table.push_back(read.categorical("contact", {"cellular", "telephone"}));
    table.push_back(read.categorical("month", {"mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}));
    table.push_back(read.categorical("day_of_week", {"mon", "tue", "wed", "thu", "fri"}));
    table.push_back(read.categorical("poutcome", {"nonexistent", "failure", "success"}));
    return table;
  }

  Encoding encoding_;
  bool with_duration_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Bank>(kInfo);
}

}  // namespace holdfast::data::bank
