// The tables against what their publishers say about them, and rows worked out by hand.

#include "holdfast/core/files.h"
#include "holdfast/core/torch.h"
#include "support/datasets.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

std::int64_t size(const std::vector<std::int64_t>& part) {
  return static_cast<std::int64_t>(part.size());
}

std::int64_t feature(const Dataset& dataset, const std::string& name) {
  for (std::size_t i = 0; i < dataset.schema.features.size(); ++i) {
    if (dataset.schema.features[i].name == name) return static_cast<std::int64_t>(i);
  }
  ADD_FAILURE() << "no feature " << name;
  return 0;
}

float value(const Dataset& dataset, std::int64_t row, const std::string& name) {
  return dataset.inputs[row][feature(dataset, name)].item<float>();
}

void expect_valid_rows(const Dataset& dataset) {
  const at::Tensor columns_first = dataset.inputs.t().contiguous().to(at::kDouble);
  for (std::size_t i = 0; i < dataset.schema.features.size(); ++i) {
    const Feature& described = dataset.schema.features[i];
    const at::Tensor column = columns_first[static_cast<std::int64_t>(i)];
    // The box is exactly as large as the data.
    EXPECT_NEAR(column.min().item<double>(), described.low, 1e-6 * (1 + std::abs(described.low))) << described.name;
    EXPECT_NEAR(column.max().item<double>(), described.high, 1e-6 * (1 + std::abs(described.high))) << described.name;
    if (described.step > 0) {
      const at::Tensor steps = (column - described.low) / described.step;
      EXPECT_LT((steps - steps.round()).abs().max().item<double>(), 1e-2) << described.name;
    }
  }
  for (const Group& group : dataset.schema.groups) {
    const at::Tensor columns = dataset.inputs.index_select(1, at::tensor(group.columns, at::kLong));
    EXPECT_TRUE(columns.sum(1).eq(1).all().item<bool>()) << group.name;
    EXPECT_TRUE(columns.eq(0).logical_or(columns.eq(1)).all().item<bool>()) << group.name;
  }
}

TEST(Adult, HasThePublishedCountsAnd29Features) {
  SKIP_WITHOUT("adult");
  const Dataset dataset = load_dataset("adult");
  EXPECT_EQ(size(dataset.train) + size(dataset.validation), 32561);
  EXPECT_EQ(size(dataset.test), 16281);
  EXPECT_EQ(dataset.test.front(), 32561);
  EXPECT_EQ(dataset.labels.slice(0, 0, 32561).sum().item<std::int64_t>(), 7841);
  EXPECT_EQ(dataset.labels.slice(0, 32561).sum().item<std::int64_t>(), 3846);
  EXPECT_EQ(dataset.schema.layout, Layout::vector(29));
  EXPECT_THAT(dataset.notes, ::testing::Contains(::testing::HasSubstr("2399 training and 1221 test rows")));
  expect_valid_rows(dataset);
}

TEST(Adult, EncodesTheFirstRowAsByHand) {
  SKIP_WITHOUT("adult");
  // 39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States,
  // <=50K
  const Dataset dataset = load_dataset("adult");
  EXPECT_FLOAT_EQ(value(dataset, 0, "age"), (39.0F - 17) / (90 - 17));
  EXPECT_FLOAT_EQ(value(dataset, 0, "education-num"), (13.0F - 1) / (16 - 1));
  EXPECT_FLOAT_EQ(value(dataset, 0, "capital-gain"), 2174.0F / 99999);
  EXPECT_EQ(value(dataset, 0, "workclass=Government"), 1);
  EXPECT_EQ(value(dataset, 0, "marital-status=Single"), 1);
  EXPECT_EQ(value(dataset, 0, "occupation=White-collar"), 1);
  EXPECT_EQ(value(dataset, 0, "sex=Male"), 1);
  EXPECT_EQ(value(dataset, 0, "native-country=United-States"), 1);
  EXPECT_EQ(dataset.labels[0].item<std::int64_t>(), 0);
  EXPECT_EQ(dataset.schema.features[0].original, std::pair(17.0, 90.0));
}

TEST(Adult, OptionsChooseColumnsAndRows) {
  SKIP_WITHOUT("adult");
  const Dataset dice = load_dataset("adult(columns=dice)");
  EXPECT_EQ(dice.schema.layout, Layout::vector(29));
  EXPECT_EQ(value(dice, 0, "education=Bachelors"), 1);
  const Dataset known = load_dataset("adult(missing=drop)");
  EXPECT_EQ(size(known.train) + size(known.validation), 30162);
  EXPECT_EQ(size(known.test), 15060);
}

TEST(Adult, OfficialFilesWithoutAHeaderGiveTheSameRows) {
  TempFolder folder;
  make_folders(folder / "plain/adult");
  make_folders(folder / "headed/adult");
  const std::string header =
      "age, workclass, fnlwgt, education, education-num, marital-status, occupation, relationship, race, sex, capital-gain, "
      "capital-loss, hours-per-week, "
      "native-country, Y\n";
  const std::string rows =
      "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, "
      "<=50K\n"
      "50, ?, 83311, Bachelors, 13, Married-civ-spouse, ?, Husband, White, Female, 0, 0, 13, ?, >50K\n";
  const std::string test_rows =
      "25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, United-States, >50K.\n";
  write_atomic(folder / "plain/adult/adult.data", rows + "\n");
  write_atomic(folder / "plain/adult/adult.test", "|1x3 Cross validator\n" + test_rows + "\n");
  write_atomic(folder / "headed/adult/adult.data", header + rows);
  write_atomic(folder / "headed/adult/adult.test", header + test_rows);
  const Dataset plain = load_dataset("adult", {.folder = folder / "plain"});
  const Dataset headed = load_dataset("adult", {.folder = folder / "headed"});
  EXPECT_EQ(plain.labels.size(0), 3);
  EXPECT_TRUE(at::equal(plain.inputs, headed.inputs));
  EXPECT_TRUE(at::equal(plain.labels, headed.labels));
  EXPECT_EQ(plain.labels[2].item<std::int64_t>(), 1);
  EXPECT_EQ(value(plain, 1, "occupation=Other"), 1);

  write_atomic(folder / "plain/adult/adult.data",
               header + "thirty, Private, 1, HS-grad, 9, Divorced, Sales, Unmarried, White, Male, 0, 0, 40, Cuba, <=50K\n");
  EXPECT_ERROR(load_dataset("adult", {.folder = folder / "plain"}), kInput,
               "adult.data:2: column 'age': 'thirty' is not a finite number");
}

TEST(Bank, HasThePublishedCounts) {
  SKIP_WITHOUT("bank");
  const Dataset dataset = load_dataset("bank");
  EXPECT_EQ(dataset.labels.size(0), 41188);
  EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), 4640);
  EXPECT_EQ(dataset.schema.layout, Layout::vector(63));
  EXPECT_EQ(dataset.schema.groups.size(), 10U);
  expect_valid_rows(dataset);
  EXPECT_EQ(size(dataset.test), 8238);
  // 56;"housemaid";"married";"basic.4y";"no";"no";"no";"telephone";"may";"mon";261;...
  EXPECT_FLOAT_EQ(value(dataset, 0, "age"), (56.0F - 17) / (98 - 17));
  EXPECT_FLOAT_EQ(value(dataset, 0, "duration"), 261.0F / 4918);
  EXPECT_EQ(value(dataset, 0, "job=housemaid"), 1);
  EXPECT_EQ(load_dataset("bank(duration=false)").schema.layout, Layout::vector(62));
}

TEST(Compas, Has6172RowsAfterTheFilterAnd18Features) {
  SKIP_WITHOUT("compas");
  const Dataset dataset = load_dataset("compas");
  EXPECT_EQ(dataset.labels.size(0), 6172);
  EXPECT_EQ(dataset.schema.layout, Layout::vector(18));
  EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), 2809);  // ProPublica's own count after the filter
  expect_valid_rows(dataset);
  EXPECT_EQ(value(dataset, 0, "race=Other"), 1);
  EXPECT_EQ(value(dataset, 0, "age_cat=Greater than 45"), 1);
  EXPECT_EQ(load_dataset("compas(drop_first=true)").schema.layout, Layout::vector(14));
}

TEST(BreastCancer, HasThePublishedCounts) {
  SKIP_WITHOUT("breast_cancer");
  const Dataset dataset = load_dataset("breast_cancer");
  EXPECT_EQ(dataset.labels.size(0), 569);
  EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), 357);  // benign
  EXPECT_EQ(dataset.schema.classes, std::vector<std::string>({"malignant", "benign"}));
  EXPECT_EQ(dataset.schema.layout, Layout::vector(30));
  expect_valid_rows(dataset);
  const Dataset raw = load_dataset("breast_cancer(encoding=raw)");
  EXPECT_FLOAT_EQ(value(raw, 0, "mean radius"), 17.99F);
  EXPECT_FLOAT_EQ(value(raw, 0, "worst fractal dimension"), 0.1189F);
  expect_valid_rows(raw);
}

TEST(BreastCancer, StandardEncodingHasMeanZeroAndDeviationOneOnTheTrainingPart) {
  SKIP_WITHOUT("breast_cancer");
  const Dataset dataset = load_dataset("breast_cancer(encoding=standard)");
  const at::Tensor train = dataset.inputs_of(dataset.train).to(at::kDouble);
  EXPECT_LT(train.mean(0).abs().max().item<double>(), 1e-5);
  EXPECT_LT((train.std(0, false) - 1).abs().max().item<double>(), 1e-5);
  expect_valid_rows(dataset);
}

// Two of the file's rows, with a description in front as Weka writes it.
std::string german_credit_file(const std::string& age) {
  return "% Universit\"at Hamburg, 'quoted\n@relation german_credit\n@attribute checking_status { '<0', '0<=X<200'}\n@data\n"
         "'<0',6,'critical/other existing credit',radio/tv,1169,'no known savings','>=7',4,'male single',none,4,'real "
         "estate',67,none,"
         "own,2,skilled,1,yes,yes,good\n"
         "'0<=X<200',48,'existing paid',radio/tv,5951,'<100','1<=X<4',2,'female div/dep/mar',none,2,'real estate'," +
         age + ",none,own,1,skilled,1,none,yes,bad\n";
}

TEST(GermanCredit, ReadsTheRowsOfAnArffFile) {
  TempFolder folder;
  make_folders(folder / "german_credit");
  write_atomic(folder / "german_credit/credit-g.arff", german_credit_file("22"));
  const Dataset dataset = load_dataset("german_credit(encoding=raw)", {.folder = folder.path()});
  EXPECT_EQ(dataset.labels.size(0), 2);
  EXPECT_EQ(dataset.schema.classes, std::vector<std::string>({"good", "bad"}));
  EXPECT_EQ(dataset.schema.layout, Layout::vector(61));
  EXPECT_EQ(dataset.schema.groups.size(), 13U);
  EXPECT_EQ(dataset.labels[1].item<std::int64_t>(), 1);
  EXPECT_EQ(value(dataset, 0, "credit_amount"), 1169);
  EXPECT_EQ(value(dataset, 0, "savings_status=no known savings"), 1);
  EXPECT_EQ(value(dataset, 1, "checking_status=0<=X<200"), 1);
  EXPECT_EQ(value(dataset, 1, "personal_status=female div/dep/mar"), 1);
}

TEST(GermanCredit, SaysWhatIsWrongWithAFileAndWhere) {
  TempFolder folder;
  make_folders(folder / "german_credit");
  const std::string path = folder / "german_credit/credit-g.arff";
  write_atomic(path, german_credit_file("young"));
  EXPECT_ERROR(load_dataset("german_credit", {.folder = folder.path()}), kInput,
               "credit-g.arff:6: column 'age': 'young' is not a finite number");
  write_atomic(path, "1,2,3\n");
  EXPECT_ERROR(load_dataset("german_credit", {.folder = folder.path()}), kInput, "has no line @data");
  write_atomic(path, "@relation x\n@data\n1,2,3\n");
  EXPECT_ERROR(load_dataset("german_credit", {.folder = folder.path()}), kInput, "credit-g.arff:3: 3 fields, expected 21");
  write_atomic(path, "@relation x\n@DATA\n");
  EXPECT_ERROR(load_dataset("german_credit", {.folder = folder.path()}), kInput, "has no rows");
}

TEST(GermanCredit, HasThePublishedCounts) {
  SKIP_WITHOUT("german_credit");
  const Dataset dataset = load_dataset("german_credit");
  EXPECT_EQ(dataset.labels.size(0), 1000);
  EXPECT_EQ(dataset.labels.sum().item<std::int64_t>(), 300);
  expect_valid_rows(dataset);
  EXPECT_EQ(size(dataset.test), 200);
  EXPECT_EQ(load_dataset("german_credit(drop_first=true)").schema.layout, Layout::vector(48));
}

TEST(Tables, SplitsDependOnTheSeedAlone) {
  SKIP_WITHOUT("breast_cancer");
  const Dataset a = load_dataset("breast_cancer", {.seed = 1}), b = load_dataset("breast_cancer", {.seed = 1});
  EXPECT_EQ(a.train, b.train);
  EXPECT_EQ(a.validation, b.validation);
  EXPECT_EQ(a.test, b.test);
  EXPECT_NE(a.test, load_dataset("breast_cancer", {.seed = 2}).test);
}

TEST(Tables, AMissingDatasetIsOneSentenceWithTheCommandThatGetsIt) {
  TempFolder folder;
  EXPECT_ERROR(load_dataset("adult", {.folder = folder.path()}), kInput, "holdfast data fetch adult");
  EXPECT_ERROR(load_dataset("bank", {.folder = folder.path()}), kInput, folder / "bank");
  EXPECT_ERROR(load_dataset("adlut", {.folder = folder.path()}), kUsage, "unknown dataset 'adlut' (did you mean 'adult'?)");
}

}  // namespace
}  // namespace holdfast::data
