// UCI Adult: does a person of the 1994 census earn more than 50,000 dollars a year?
//
// Levels are merged as in Mothilal et al., "Explaining Machine Learning Classifiers through Diverse Counterfactual
// Explanations", FAT* 2020, whose 29 features the R2ET paper's tables are close to: employers into four kinds, occupations
// into six, married people of any kind into one. Never used: fnlwgt (a survey weight). Two sets of columns, 29 features each:
//   all    age, education-num, capital-gain, capital-loss, hours-per-week; workclass (4), marital-status (5), occupation (6),
//          race (5), sex (2), native-country (2). Left out: education (the words of education-num) and relationship (follows
//          from marital-status and sex).
//   dice   the paper's own: age, hours-per-week; workclass (4), education (8), marital-status (5), occupation (6), race (2), sex
//   (2).
// Unknown fields (?) count as the level that stands for others.
#include <algorithm>
#include <map>

#include "holdfast/core/files.h"
#include "holdfast/data/dataset.h"
#include "tables.h"

namespace holdfast::data::adult {

const MethodInfo kInfo{
    .name = "adult",
    .summary = "census records: income above 50,000 dollars a year or not (UCI Adult)",
    .citation = "Becker and Kohavi, Adult, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20",
    .options = table_options({{"columns", "all", one_of({"all", "dice"}), "which columns: all, or those of Mothilal et al. 2020"},
                              {"missing", "keep", one_of({"keep", "drop"}), "rows with an unknown field (?)"}}),
    .notes = "32,561 rows for training and validation, 16,281 for test, 29 features after merging levels; fnlwgt is not used"};

const std::vector<std::string> kNames = {
    "age",  "workclass", "fnlwgt",       "education",    "education-num",  "marital-status", "occupation", "relationship",
    "race", "sex",       "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"};

using Merging = std::map<std::string, std::string>;

// Levels not named keep their name.
const Merging kEmployers = {{"Self-emp-not-inc", "Self-employed"},
                            {"Self-emp-inc", "Self-employed"},
                            {"Federal-gov", "Government"},
                            {"Local-gov", "Government"},
                            {"State-gov", "Government"},
                            {"Without-pay", "Other"},
                            {"Never-worked", "Other"},
                            {"?", "Other"}};
const Merging kMarriages = {{"Married-civ-spouse", "Married"},
                            {"Married-AF-spouse", "Married"},
                            {"Married-spouse-absent", "Married"},
                            {"Never-married", "Single"}};
const Merging kOccupations = {{"Adm-clerical", "White-collar"},
                              {"Exec-managerial", "White-collar"},
                              {"Craft-repair", "Blue-collar"},
                              {"Farming-fishing", "Blue-collar"},
                              {"Handlers-cleaners", "Blue-collar"},
                              {"Machine-op-inspct", "Blue-collar"},
                              {"Transport-moving", "Blue-collar"},
                              {"Prof-specialty", "Professional"},
                              {"Other-service", "Service"},
                              {"Priv-house-serv", "Service"},
                              {"Protective-serv", "Service"},
                              {"Tech-support", "Service"},
                              {"Armed-Forces", "Other"},
                              {"?", "Other"}};
const Merging kSchools = {{"Preschool", "School"}, {"1st-4th", "School"}, {"5th-6th", "School"}, {"7th-8th", "School"},
                          {"9th", "School"},       {"10th", "School"},    {"11th", "School"},    {"12th", "School"},
                          {"Assoc-acdm", "Assoc"}, {"Assoc-voc", "Assoc"}};

std::function<std::string(const std::string&)> merge(const Merging& merging) {
  return [&merging](const std::string& level) {
    const auto found = merging.find(level);
    return found == merging.end() ? level : found->second;
  };
}

// Sets one level against all others together.
std::function<std::string(const std::string&)> only(const std::string& kept) {
  return [kept](const std::string& level) { return level == kept ? level : "Other"; };
}

// UCI's files have no header, copies of them often do; the official test file opens with a line of its own, and its
// labels end in a full stop.
CsvTable read_part(const std::string& path) {
  std::string text = read_text(path);
  // Emptied rather than removed, so that messages name the right line.
  if (text.starts_with("age") || text.starts_with("|")) text.erase(0, std::min(text.find('\n'), text.size()));
  CsvTable csv = parse_csv(text, {.header = false}, path);
  if (csv.rows.empty()) input_error("{} has no rows", path);
  if (csv.rows.front().size() != kNames.size()) {
    input_error("{}:{}: {} fields, but Adult has {}", path, csv.lines.front(), csv.rows.front().size(), kNames.size());
  }
  csv.names = kNames;
  for (auto& row : csv.rows) {
    if (row.back().ends_with('.')) row.back().pop_back();
  }
  return csv;
}

bool has_unknown(const std::vector<std::string>& row) {
  return std::find(row.begin(), row.end(), "?") != row.end();
}

Table all_columns(const ColumnReader& read) {
  return {read.numeric("age"),
          read.numeric("education-num"),
          read.numeric("capital-gain"),
          read.numeric("capital-loss"),
          read.numeric("hours-per-week"),
          read.categorical("workclass", {"Private", "Self-employed", "Government", "Other"}, merge(kEmployers)),
          read.categorical("marital-status", {"Married", "Single", "Divorced", "Separated", "Widowed"}, merge(kMarriages)),
          read.categorical("occupation", {"White-collar", "Blue-collar", "Professional", "Sales", "Service", "Other"},
                           merge(kOccupations)),
          read.categorical("race", {"White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"}),
          read.categorical("sex", {"Female", "Male"}),
          read.categorical("native-country", {"United-States", "Other"}, only("United-States"))};
}

Table dice_columns(const ColumnReader& read) {
  return {read.numeric("age"),
          read.numeric("hours-per-week"),
          read.categorical("workclass", {"Private", "Self-employed", "Government", "Other"}, merge(kEmployers)),
          read.categorical("education",
                           {"School", "HS-grad", "Some-college", "Assoc", "Bachelors", "Masters", "Prof-school", "Doctorate"},
                           merge(kSchools)),
          read.categorical("marital-status", {"Married", "Single", "Divorced", "Separated", "Widowed"}, merge(kMarriages)),
          read.categorical("occupation", {"White-collar", "Blue-collar", "Professional", "Sales", "Service", "Other"},
                           merge(kOccupations)),
          read.categorical("race", {"White", "Other"}, only("White")),
          read.categorical("sex", {"Female", "Male"})};
}

// Both files' columns, one below the other. They are read apart so that messages name the right file.
Column joined(Column first, const Column& second) {
  first.numbers.insert(first.numbers.end(), second.numbers.begin(), second.numbers.end());
  first.codes.insert(first.codes.end(), second.codes.begin(), second.codes.end());
  return first;
}

class Adult final : public DatasetLoader {
 public:
  explicit Adult(const Options& options)
      : encoding_(encoding_of(options)),
        dice_(options.word("columns") == "dice"),
        drop_unknown_(options.word("missing") == "drop") {}

  Source source() const override {
    const std::string base = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/";
    // The official file, and the same with a header row in place of its first or before its first line.
    return {.folder = "adult",
            .files = {{.path = "adult.data",
                       .sha256 = {"5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                                  "a5b3a620cb7325a48f5090531afd611ce4622440451a5cfbd11c49be2ed868e5"},
                       .url = base + "adult.data"},
                      {.path = "adult.test",
                       .sha256 = {"a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
                                  "0543912af15c52ba12336b042c8f9f96541d6134d9b3d48dba647281fb2b39d1"},
                       .url = base + "adult.test"}},
            .licence = "CC BY 4.0",
            .homepage = "https://archive.ics.uci.edu/dataset/2/adult"};
  }

  Dataset load(const LoadContext& context) const override {
    const std::string folder = require_source(kInfo.name, source(), context.folder);
    Part train = read(folder + "/adult.data");
    const Part test = read(folder + "/adult.test");
    const auto train_rows = static_cast<std::int64_t>(train.labels.size());
    for (std::size_t i = 0; i < train.columns.size(); ++i)
      train.columns[i] = joined(std::move(train.columns[i]), test.columns[i]);
    train.labels = joined(std::move(train.labels), test.labels);

    Dataset dataset =
        table_dataset(train.columns, train.labels, official_split(train.labels.codes, train_rows, context.seed), encoding_);
    dataset.notes.push_back(fmt::format("{} training and {} test rows with an unknown field (?) were {}", train.unknown,
                                        test.unknown, drop_unknown_ ? "left out" : "kept, as the level Other"));
    return dataset;
  }

 private:
  struct Part {
    Table columns;
    Column labels;
    std::int64_t unknown = 0;
  };

  Part read(const std::string& path) const {
    CsvTable csv = read_part(path);
    Part part{.unknown = std::count_if(csv.rows.begin(), csv.rows.end(), has_unknown)};
    if (drop_unknown_) csv = filtered(csv, [](const auto& row) { return !has_unknown(row); });
    const ColumnReader reader(csv, path);
    part.columns = dice_ ? dice_columns(reader) : all_columns(reader);
    part.labels = reader.categorical("income", {"<=50K", ">50K"});
    return part;
  }

  Encoding encoding_;
  bool dice_;
  bool drop_unknown_;
};

void add_to(Registry<DatasetLoader>& registry) {
  registry.add<Adult>(kInfo);
}

}  // namespace holdfast::data::adult
