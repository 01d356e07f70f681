// ProPublica's COMPAS data: was a defendant arrested again within two years?
// Rows are kept as in ProPublica's own analysis: screened within 30 days of the arrest, a known outcome, a charge that is not a
// mere traffic offence, and a score: 6,172 of 7,214. Features: age, priors, three juvenile counts, sex (2), race (6), degree of
// the charge (2), age category (3): 18.
#include <algorithm>
#include <charconv>

#include "holdfast/data/dataset.h"
#include "tables.h"

namespace holdfast::data::compas {

const MethodInfo kInfo{
    .name = "compas",
    .summary = "criminal records: arrested again within two years or not (ProPublica)",
    .citation = "Larson, Mattu, Kirchner and Angwin, How We Analyzed the COMPAS Recidivism Algorithm, ProPublica, 2016",
    .options = table_options(),
    .notes = "6,172 rows after ProPublica's filter, 18 features"};

bool within_30_days(const std::string& days) {
  int number = 0;
  const auto [end, status] = std::from_chars(days.data(), days.data() + days.size(), number);
  return status == std::errc() && end == days.data() + days.size() && -30 <= number && number <= 30;
}

CsvTable propublica_rows(const CsvTable& csv, const std::string& path) {
  const std::size_t days = csv.column("days_b_screening_arrest", path), outcome = csv.column("is_recid", path);
  const std::size_t charge = csv.column("c_charge_degree", path), score = csv.column("score_text", path);
  return filtered(csv, [=](const auto& row) {
    return within_30_days(row[days]) && row[outcome] != "-1" && row[charge] != "O" && row[score] != "N/A";
  });
}

class Compas final : public DatasetLoader {
 public:
  explicit Compas(const Options& options) : encoding_(encoding_of(options)) {}

  Source source() const override {
    return {.folder = "compas",
            .files = {{.path = "compas-scores-two-years.csv",
                       .sha256 = {"c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"},
                       .url = "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv"}},
            .licence = "not stated",
            .homepage = "https://github.com/propublica/compas-analysis"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string path = require_source(kInfo.name, source(), context.folder) + "/compas-scores-two-years.csv";
    const CsvTable all = read_csv(path);
    const CsvTable csv = propublica_rows(all, path);
    if (csv.rows.empty()) input_error("{}: none of {} rows passes ProPublica's filter", path, all.rows.size());

    const ColumnReader read(csv, path);
    const Table table = {
        read.numeric("age"),
        read.numeric("priors_count"),
        read.numeric("juv_fel_count"),
        read.numeric("juv_misd_count"),
        read.numeric("juv_other_count"),
        read.categorical("sex", {"Female", "Male"}),
        read.categorical("race", {"African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"}),
        read.categorical("c_charge_degree", {"F", "M"}),
        read.categorical("age_cat", {"Less than 25", "25 - 45", "Greater than 45"})};
    Column labels = read.categorical("two_year_recid", {"0", "1"});
    labels.levels = {"not arrested again", "arrested again"};
    Dataset dataset = table_dataset(table, labels, stratified_split(labels.codes, context.seed), encoding_);
    dataset.notes.push_back(fmt::format("ProPublica's filter keeps {} of {} rows", csv.rows.size(), all.rows.size()));
    return dataset;
  }

 private:
  Encoding encoding_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Compas>(kInfo);
}

}  // namespace holdfast::data::compas
