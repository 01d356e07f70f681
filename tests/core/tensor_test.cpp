#include "holdfast/core/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "holdfast/core/device_random.h"
#include "holdfast/core/npy.h"
#include "holdfast/core/random_words.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ToTensor, KeepsTypeShapeAndValuesBothWays) {
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kChar, at::kUInt16, at::kShort, at::kUInt32, at::kInt, at::kUInt64,
                                    at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    const at::Tensor tensor = at::arange(6).reshape({2, 3}).to(type);
    const RawArray array = to_raw(tensor);
    EXPECT_EQ(array.bytes.size(), tensor.nbytes());
    const at::Tensor back = to_tensor(array);
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(at::equal(back.to(at::kDouble), tensor.to(at::kDouble))) << c10::toString(type);
  }
}

TEST(ToTensor, TakesOverTheBytesWithoutACopy) {
  RawArray array = to_raw(at::arange(1000));
  const void* bytes = array.bytes.data();
  at::Tensor tensor = to_tensor(std::move(array));
  EXPECT_EQ(tensor.const_data_ptr(), bytes);
  EXPECT_EQ(tensor.sum().item<std::int64_t>(), 499500);
}

TEST(ToTensor, AnyByteButZeroIsTrue) {
  const at::Tensor tensor = to_tensor({ElementType::kBool, {3}, {std::byte{0}, std::byte{1}, std::byte{7}}});
  EXPECT_EQ(tensor.to(at::kLong).sum().item<std::int64_t>(), 2);
}

TEST(ToTensor, EmptyAndSingleNumbers) {
  EXPECT_EQ(to_tensor({ElementType::kFloat32, {3, 0, 2}, {}}).sizes(), (at::IntArrayRef{3, 0, 2}));
  EXPECT_EQ(to_tensor(to_raw(at::scalar_tensor(2.5))).item<double>(), 2.5);
}

TEST(ToRaw, ViewsAreWrittenRowMajor) {
  const at::Tensor tensor = at::arange(6, at::kFloat).reshape({2, 3}).t();
  const RawArray array = to_raw(tensor);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{3, 2}));
  const float expected[] = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::memcmp(array.bytes.data(), expected, sizeof expected), 0);
  EXPECT_ERROR(to_raw(at::zeros({2}, at::kComplexFloat)), kInput, "cannot be written");
}

class InputFiles : public ::testing::Test {
 protected:
  std::string write(const at::Tensor& tensor) const {
    write_tensor(path(), tensor);
    return path();
  }
  std::string path() const { return folder_ / "x.npy"; }

 private:
  TempFolder folder_;
};

TEST_F(InputFiles, NumbersBecomeFloat32) {
  const at::Tensor numbers = at::arange(6).reshape({2, 3});
  for (const at::ScalarType type :
       {at::kByte, at::kShort, at::kUInt16, at::kUInt32, at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    const at::Tensor inputs = read_inputs(write(numbers.to(type)));
    EXPECT_EQ(inputs.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(inputs, numbers.to(at::kFloat))) << c10::toString(type);
  }
}

TEST_F(InputFiles, DoublesStayWhenAsked) {
  const at::Tensor third = at::full({1, 1}, 1.0 / 3.0, at::kDouble);
  EXPECT_TRUE(at::equal(read_inputs(write(third), {.keep_double = true}), third));
  EXPECT_EQ(read_inputs(write(third.to(at::kFloat)), {.keep_double = true}).scalar_type(), at::kFloat);
  // Integers that float32 cannot tell apart.
  const at::Tensor large = at::full({1, 1}, (std::int64_t{1} << 40) + 1, at::kLong);
  EXPECT_TRUE(at::equal(read_inputs(write(large), {.keep_double = true}), large.to(at::kDouble)));
}

TEST_F(InputFiles, NonFiniteInputsAreNamed) {
  at::Tensor inputs = at::zeros({4, 2, 3});
  inputs[2][1][0] = kNan;
  inputs[3][0][0] = kInfinity;
  EXPECT_ERROR(read_inputs(write(inputs)), kInput, path() + ": element [2, 1, 0] is nan; inputs must be finite");
  inputs[1][0][2] = -kInfinity;
  EXPECT_ERROR(read_inputs(write(inputs)), kInput, "element [1, 0, 2] is -inf; inputs must be finite");
  at::Tensor large = at::zeros({2, 2}, at::kDouble);
  large[0][1] = 1e300;
  EXPECT_ERROR(read_inputs(write(large)), kInput, "element [0, 1] is 1e+300, too large for float32");
  EXPECT_NO_THROW(read_inputs(write(large), {.keep_double = true}));
}

TEST_F(InputFiles, NonFiniteInputsAreReadWhenTheCallerCountsThem) {
  at::Tensor inputs = at::zeros({4, 2});
  inputs[2][1] = kNan;
  EXPECT_EQ(at::isnan(read_inputs(write(inputs), {.allow_non_finite = true})).sum().item<std::int64_t>(), 1);
}

TEST_F(InputFiles, WhatCannotBeInputIsRefused) {
  EXPECT_ERROR(read_inputs(write(at::zeros({0, 3}))), kInput, path() + ": is empty, its shape is [0, 3]");
  EXPECT_ERROR(read_inputs(write(at::zeros({3, 0}))), kInput, "is empty");
  EXPECT_ERROR(read_inputs(write(at::scalar_tensor(1))), kInput, "holds a single number");
  EXPECT_ERROR(read_inputs(write(at::zeros({2, 2}, at::kBool))), kInput, "has bool elements");
  EXPECT_ERROR(read_inputs("/nowhere/x.npy"), kInput, "cannot read /nowhere/x.npy: No such file or directory");
}

TEST_F(InputFiles, LabelsOfEveryIntegerType) {
  for (const at::ScalarType type :
       {at::kByte, at::kChar, at::kShort, at::kUInt16, at::kInt, at::kUInt32, at::kLong, at::kUInt64}) {
    const at::Tensor labels = read_labels(write(at::arange(5).to(type)), 5, 5);
    EXPECT_EQ(labels.scalar_type(), at::kLong);
    EXPECT_TRUE(at::equal(labels, at::arange(5)));
  }
}

TEST_F(InputFiles, WrongLabelsAreNamed) {
  write(at::arange(5));
  EXPECT_ERROR(read_labels(path(), 5, 4), kInput, path() + ": label 4 of sample 4 is not in 0 to 3");
  EXPECT_ERROR(read_labels(path(), 6, 5), kInput, path() + ": has 5 labels for 6 samples");
  EXPECT_NO_THROW(read_labels(path(), 5));
  EXPECT_ERROR(read_labels(write(at::arange(3) - 1), 3), kInput, "label -1 of sample 0 is negative");
  EXPECT_ERROR(read_labels(write(at::arange(3) - 1), 3, 3), kInput, "label -1 of sample 0 is not in 0 to 2");
  EXPECT_ERROR(read_labels(write(at::zeros({3})), 3), kInput, "has float32 elements; labels must be integers");
  EXPECT_ERROR(read_labels(write(at::zeros({3}, at::kBool)), 3), kInput, "has bool elements");
  EXPECT_ERROR(read_labels(write(at::zeros({3, 1}, at::kLong)), 3), kInput, "has shape [3, 1]; labels must have one axis");
}

TEST(RandomRows, DependOnTheirIdAlone) {
  const at::Tensor ids = at::arange(20);
  const at::Tensor all = random_normal({3, 5}, ids, 7, "test");
  EXPECT_EQ(all.sizes(), (at::IntArrayRef{20, 3, 5}));
  const at::Tensor some = random_normal({3, 5}, torch::tensor({17, 3, 3}), 7, "test");
  EXPECT_TRUE(at::equal(some[0], all[17]));
  EXPECT_TRUE(at::equal(some[1], all[3]));
  EXPECT_TRUE(at::equal(some[2], all[3]));
  EXPECT_FALSE(at::equal(all, random_normal({3, 5}, ids, 8, "test")));
  EXPECT_FALSE(at::equal(all, random_normal({3, 5}, ids, 7, "other")));
  // A shorter row is the start of a longer one.
  EXPECT_TRUE(at::equal(random_uniform({4}, ids, 7, "test"), random_uniform({9}, ids, 7, "test").slice(1, 0, 4)));
}

TEST(RandomRows, AreTheStreamsNumbers) {
  const at::Tensor normal = random_normal({3}, torch::tensor({5}), 1, "test");
  const at::Tensor uniform = random_uniform({3}, torch::tensor({5}), 1, "test");
  RandomStream normal_stream(1, "test", 5), uniform_stream(1, "test", 5);
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(normal[0][i].item<float>(), normal_stream.normal(), 1e-6);
    EXPECT_EQ(uniform[0][i].item<float>(), static_cast<float>(uniform_stream.uniform()));
  }
}

TEST(RandomRows, HaveTheRightMoments) {
  const at::Tensor ids = at::arange(1000);
  const at::Tensor normal = random_normal({200}, ids, 0, "moments");
  EXPECT_NEAR(normal.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(normal.pow(2).mean().item<double>(), 1, 0.02);
  EXPECT_NEAR(normal.pow(4).mean().item<double>(), 3, 0.1);
  const at::Tensor uniform = random_uniform({200}, ids, 0, "moments");
  EXPECT_NEAR(uniform.mean().item<double>(), 0.5, 0.003);
  EXPECT_NEAR(uniform.var().item<double>(), 1.0 / 12, 0.001);
  EXPECT_GE(uniform.min().item<double>(), 0);
  EXPECT_LT(uniform.max().item<double>(), 1);
  // Rows with neighbouring ids are not related.
  EXPECT_NEAR((normal.slice(0, 1) * normal.slice(0, 0, -1)).mean().item<double>(), 0, 0.01);
}

TEST(RandomRows, NoRowsAndSingleNumbers) {
  EXPECT_EQ(random_normal({3}, at::empty({0}, at::kLong), 0, "x").sizes(), (at::IntArrayRef{0, 3}));
  EXPECT_EQ(random_normal({}, at::arange(4), 0, "x").sizes(), (at::IntArrayRef{4}));
}

// What a GPU does, on the CPU.
TEST(DeviceRandom, WordsAreThoseOfTheStreams) {
  const at::Tensor ids = torch::tensor({std::int64_t{0}, std::int64_t{5}, std::int64_t{1} << 40, std::int64_t{-3}});
  constexpr std::int64_t kWords = 70;
  const at::Tensor found = stream_words(ids, kWords, 11, "test");
  ASSERT_EQ(found.sizes(), (at::IntArrayRef{4, kWords}));
  const StreamWords streams(11, "test");
  std::vector<std::uint32_t> expected(kWords);
  for (std::int64_t row = 0; row < ids.numel(); ++row) {
    streams.fill(static_cast<std::uint64_t>(ids[row].item<std::int64_t>()), 0, expected);
    for (std::int64_t i = 0; i < kWords; ++i)
      EXPECT_EQ(found[row][i].item<std::int64_t>(), expected[static_cast<std::size_t>(i)]);
  }
}

TEST(DeviceRandom, NumbersAreThoseOfTheRows) {
  const at::Tensor ids = at::arange(50), words = stream_words(ids, 300, 3, "test");
  EXPECT_TRUE(at::equal(uniform_from(words).to(at::kFloat), random_uniform({300}, ids, 3, "test")));
  EXPECT_LT((normal_from(words) - random_normal({300}, ids, 3, "test")).abs().max().item<double>(), 1e-6);
}

TEST(AllFinite, SeesTheLastElement) {
  at::Tensor tensor = at::zeros({3, 3});
  EXPECT_TRUE(all_finite(tensor));
  tensor[2][2] = kNan;
  EXPECT_FALSE(all_finite(tensor));
  tensor[2][2] = kInfinity;
  EXPECT_FALSE(all_finite(tensor));
  EXPECT_TRUE(all_finite(at::empty({0})));
}

}  // namespace
}  // namespace holdfast
