#include "holdfast/core/tensor_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "holdfast/core/large_tensor.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

// Limits hold for the process: each test lifts its own.
class TensorMemory : public testing::Test {
 protected:
  void TearDown() override {
    set_memory_limit(kNoMemoryLimit);
    set_scratch_folder("");
  }
};

TEST_F(TensorMemory, CountsWhatIsTakenAndGivenBack) {
  limit_tensor_memory(std::int64_t{1} << 30);
  const std::int64_t before = tensor_memory();
  reset_peak_tensor_memory();
  {
    const at::Tensor numbers = at::zeros({1 << 20});
    EXPECT_GE(tensor_memory(), before + (4 << 20));
    EXPECT_LT(tensor_memory(), before + (5 << 20));
  }
  EXPECT_EQ(tensor_memory(), before);
  EXPECT_GE(peak_tensor_memory(), before + (4 << 20));
}

TEST_F(TensorMemory, RefusesWhatGoesOverTheLimit) {
  limit_tensor_memory(tensor_memory() + (8 << 20));
  EXPECT_NO_THROW(at::zeros({1 << 20}));
  EXPECT_ERROR(at::zeros({4 << 20}), kFailure, "out of memory: 16.0 MiB more would make");
  // An interpreter may hide the type of what it caught, once.
  EXPECT_ERROR(throw_if_out_of_memory(std::runtime_error("something")), kFailure, "out of memory");
  EXPECT_NO_THROW(throw_if_out_of_memory(std::runtime_error("something")));
  EXPECT_ERROR(throw_if_out_of_memory(std::runtime_error("x: CUDA out of memory. Tried")), kFailure, "on the device");
}

TEST_F(TensorMemory, LargeTensorsLieInFilesAndHoldTheSame) {
  const TempFolder folder;
  const at::Tensor plain = at::arange(3 << 20).to(at::kFloat).view({3 << 10, 1 << 10});  // 12 MiB
  const at::Tensor rows = at::arange((3 << 10) * 2).remainder(3 << 10);                  // twice that
  const auto half = [](std::int64_t begin, const at::Tensor& part) { return part * 0.5 + begin * 0; };
  const at::Tensor selected = large_select(plain, rows), doubled = large_change(plain, at::kDouble, half);
  set_scratch_folder(folder.path());
  limit_tensor_memory(tensor_memory() + (20 << 20));
  const at::Tensor mapped = large_select(plain, rows), mapped_doubles = large_change(plain, at::kDouble, half);
  release_pages();
  set_memory_limit(kNoMemoryLimit);
  EXPECT_TRUE(at::equal(mapped, selected) && at::equal(mapped_doubles, doubled));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(TensorMemory, LargeArraysAreMappedAndEqualWhatIsRead) {
  const TempFolder folder;
  const at::Tensor numbers = at::arange(5 << 20).to(at::kFloat).view({5, 1 << 20});
  write_tensor(folder / "x.npy", numbers);
  at::Tensor bad = numbers.clone();
  bad[3][7] = std::numeric_limits<float>::quiet_NaN();
  write_tensor(folder / "bad.npy", bad);
  set_scratch_folder(folder.path());
  limit_tensor_memory(tensor_memory() + (12 << 20));  // the array has 20 MiB
  const at::Tensor read = read_inputs(folder / "x.npy");
  EXPECT_ERROR(read_inputs(folder / "bad.npy"), kInput, "element [3, 7] is nan; inputs must be finite");
  set_memory_limit(kNoMemoryLimit);
  EXPECT_TRUE(at::equal(read, numbers));
  EXPECT_TRUE(at::equal(read_inputs(folder / "x.npy", {.keep_double = true}), numbers));
}

}  // namespace
}  // namespace holdfast
