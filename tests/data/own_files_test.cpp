// Files of the user's own: csv, npy and idx.

#include "holdfast/core/files.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "support/datasets.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

class OwnFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    write_atomic(folder_ / name, text);
    return folder_ / name;
  }
  std::string write(const std::string& name, const at::Tensor& tensor) {
    write_tensor(folder_ / name, tensor);
    return folder_ / name;
  }
  TempFolder folder_;
};

using CsvFile = OwnFiles;

TEST_F(CsvFile, TypesAreInferredAndTheLastColumnIsTheLabel) {
  const std::string path = write("t.csv", "age,job,answer\n20,cook,no\n30,smith,yes\n60,cook,yes\n40,smith,no\n");
  const Dataset dataset = load_dataset("csv(path=" + path + ")");
  EXPECT_EQ(dataset.schema.layout, Layout::vector(3));
  EXPECT_EQ(dataset.schema.features[1].name, "job=cook");
  EXPECT_EQ(dataset.schema.classes, std::vector<std::string>({"no", "yes"}));
  EXPECT_TRUE(at::equal(dataset.labels, at::tensor({0, 1, 1, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(dataset.inputs[1], at::tensor({0.25F, 0.F, 1.F})));
}

TEST_F(CsvFile, OptionsChooseLabelTypesAndColumns) {
  const std::string path = write("t.csv", "id;class;zip;x\na1;10;7;0.5\na2;9;8;1.5\na3;10;7;2.5\n");
  const Dataset dataset =
      load_dataset("csv(path=" + path + ",separator=semicolon,label=class,categorical=zip,drop=id,encoding=raw)");
  EXPECT_EQ(dataset.schema.classes, std::vector<std::string>({"9", "10"}));  // by number, not by spelling
  EXPECT_TRUE(at::equal(dataset.labels, at::tensor({1, 0, 1}, at::kLong)));
  ASSERT_EQ(dataset.schema.groups.size(), 1U);
  EXPECT_EQ(dataset.schema.groups[0].levels, std::vector<std::string>({"7", "8"}));
  EXPECT_TRUE(at::equal(dataset.inputs[2], at::tensor({1.F, 0.F, 2.5F})));
}

TEST_F(CsvFile, WithASchemaColumnsAreTakenAsTheyStand) {
  const std::string path = write("t.csv", "b,label,a\n0.25,y,3\n0.75,n,4\n");
  const std::string schema =
      write("s.json",
            R"({"layout": {"kind": "vector", "length": 2}, "features": [{"name": "a", "low": 0, "high": 10, "frozen": true},
                                       {"name": "b"}], "classes": ["y", "n"]})");
  const Dataset dataset = load_dataset("csv(path=" + path + ",label=label,schema=" + schema + ")");
  EXPECT_TRUE(at::equal(dataset.inputs, at::tensor({3.F, 0.25F, 4.F, 0.75F}).view({2, 2})));
  EXPECT_TRUE(dataset.schema.features[0].frozen);
  EXPECT_EQ(dataset.schema.features[0].high, 10);
  EXPECT_TRUE(at::equal(dataset.labels, at::tensor({0, 1}, at::kLong)));
  EXPECT_ERROR(load_dataset("csv(path=" + path + ",encoding=raw,schema=" + schema + ")"), kUsage, "taken as they stand");
}

TEST_F(CsvFile, BadOnesAreOneSentence) {
  EXPECT_ERROR(load_dataset("csv"), kUsage, "csv(path=table.csv)");
  EXPECT_ERROR(load_dataset("csv(path=" + folder_ / "none.csv" + ")"), kInput, "none.csv");
  EXPECT_ERROR(load_dataset("csv(path=" + write("a.csv", "x,y\n") + ")"), kInput, "a.csv has no rows");
  EXPECT_ERROR(load_dataset("csv(path=" + write("b.csv", "x,y\n1,a\n,b\n") + ")"), kInput, "b.csv:3: column 'x' is empty");
  EXPECT_ERROR(load_dataset("csv(path=" + write("c.csv", "x,y\n1,0.5\n2,1.5\n") + ")"), kInput,
               "holds 2 different numbers; classes are needed");
  EXPECT_ERROR(load_dataset("csv(path=" + write("d.csv", "x,y\n1,a\n2,b\n") + ",label=z)"), kInput, "z");
  EXPECT_ERROR(load_dataset("csv(path=" + write("e.csv", "y\na\nb\n") + ")"), kInput, "no column beside the label");
  EXPECT_ERROR(load_dataset("csv(path=" + write("h.csv", "x,x,y\n1,2,a\n3,4,b\n") + ")"), kInput,
               "h.csv: two columns are called 'x'");
  std::string names = "name,y\n";
  for (int i = 0; i < 201; ++i) names += "n" + std::to_string(i) + ",a\n";
  EXPECT_ERROR(load_dataset("csv(path=" + write("f.csv", names) + ")"), kInput,
               "column 'name' has 201 different values, more than 200; leave it out with drop=name");
  const std::string schema =
      write("s.json", R"({"layout": {"kind": "vector", "length": 1}, "features": [{"name": "x"}], "classes": ["a"]})");
  EXPECT_ERROR(load_dataset("csv(path=" + write("g.csv", "x,y\n1,a\n2,b\n") + ",schema=" + schema + ")"), kInput,
               "g.csv:3: column 'y': unknown value 'b'");
}

using NpyFiles = OwnFiles;

TEST_F(NpyFiles, AreReadWithAndWithoutASchema) {
  const std::string x = write("x.npy", at::arange(24, at::kFloat).view({4, 2, 3}));
  const std::string y = write("y.npy", at::tensor({0, 1, 2, 1}, at::kLong));
  const Dataset guessed = load_dataset("npy(inputs=" + x + ",labels=" + y + ")");
  EXPECT_EQ(guessed.schema.layout, Layout::grid(1, 2, 3));
  EXPECT_EQ(guessed.inputs.sizes(), at::IntArrayRef({4, 1, 2, 3}));
  EXPECT_EQ(guessed.classes(), 3);

  const std::string schema =
      write("s.json", R"({"layout": {"kind": "graph", "nodes": 3, "sides": 2}, "range": [0, 30], "classes": ["a", "b", "c"]})");
  const Dataset described = load_dataset("npy(inputs=" + x + ",labels=" + y + ",schema=" + schema + ")");
  EXPECT_EQ(described.schema.layout, Layout::graph(3, 2));
  EXPECT_EQ(described.inputs.sizes(), at::IntArrayRef({4, 2, 3}));
  EXPECT_EQ(described.schema.classes[2], "c");
}

TEST_F(NpyFiles, ImagesOfOneChannelFitTheirSchemaWithAndWithoutIt) {
  const std::string y = write("y.npy", at::tensor({0, 1}, at::kLong));
  const std::string schema = write("s.json", R"({"layout": {"kind": "grid", "height": 2, "width": 3}})");
  for (const at::Tensor& x : {at::zeros({2, 2, 3}), at::zeros({2, 1, 2, 3})}) {
    EXPECT_EQ(load_dataset("npy(inputs=" + write("x.npy", x) + ",labels=" + y + ",schema=" + schema + ")").inputs.sizes(),
              at::IntArrayRef({2, 1, 2, 3}));
  }
  EXPECT_ERROR(load_dataset("npy(inputs=" + write("x.npy", at::zeros({2, 3, 2})) + ",labels=" + y + ",schema=" + schema + ")"),
               kInput, "samples of shape [3, 2] do not fit the 1 x 2 x 3 image");
}

TEST_F(NpyFiles, BadOnesAreOneSentence) {
  const std::string x = write("x.npy", at::zeros({3, 2}));
  const std::string y = write("y.npy", at::tensor({0, 1, 5}, at::kLong));
  EXPECT_ERROR(load_dataset("npy(inputs=" + x + ")"), kUsage, "npy(inputs=x.npy,labels=y.npy)");
  EXPECT_ERROR(load_dataset("npy(inputs=" + write("v.npy", at::zeros({3})) + ",labels=" + y + ")"), kInput, "expected [N, ...]");
  EXPECT_ERROR(load_dataset("npy(inputs=" + write("w.npy", at::zeros({3, 2, 2, 2, 2})) + ",labels=" + y + ")"), kInput,
               "need a schema");
  at::Tensor bad = at::zeros({3, 2});
  bad[1][1] = std::numeric_limits<float>::infinity();
  EXPECT_ERROR(load_dataset("npy(inputs=" + write("bad.npy", bad) + ",labels=" + y + ")"), kInput, "bad.npy");
  const std::string schema = write("s.json", R"({"layout": {"kind": "vector", "length": 2}, "classes": ["a", "b"]})");
  EXPECT_ERROR(load_dataset("npy(inputs=" + x + ",labels=" + y + ",schema=" + schema + ")"), kInput, "5");
}

TEST_F(OwnFiles, IdxImagesAreScaledToZeroToOne) {
  using namespace std::string_literals;
  const std::string images = write("i.idx", "\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2\x00\xff\x33\x66"s);
  const std::string labels = write("l.idx", "\0\0\x08\x01\0\0\0\2\1\0"s);
  const Dataset dataset = load_dataset("idx(inputs=" + images + ",labels=" + labels + ")");
  EXPECT_EQ(dataset.schema.layout, Layout::grid(1, 1, 2));
  EXPECT_TRUE(at::allclose(dataset.inputs.flatten(), at::tensor({0.F, 1.F, 0.2F, 0.4F})));
  EXPECT_EQ(dataset.schema.range, std::pair(0.0, 1.0));
  EXPECT_TRUE(at::equal(dataset.labels, at::tensor({1, 0}, at::kLong)));
  const std::string few = write("few.idx", "\0\0\x08\x01\0\0\0\1\1"s);
  EXPECT_ERROR(load_dataset("idx(inputs=" + images + ",labels=" + few + ")"), kInput,
               "of shape [1], expected whole numbers of shape [2]");
}

}  // namespace
}  // namespace holdfast::data
