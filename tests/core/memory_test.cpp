#include "holdfast/core/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <vector>

#include "holdfast/core/file_stream.h"
#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

TEST(Memory, SizesAreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_memory("4G", "--memory"), std::int64_t{4} << 30);
  EXPECT_EQ(parse_memory("512M", "--memory"), std::int64_t{512} << 20);
  EXPECT_EQ(parse_memory("1.5 GiB", "--memory"), std::int64_t{3} << 29);
  EXPECT_EQ(parse_memory("2097152", "--memory"), std::int64_t{2} << 20);
  for (const char* wrong : {"", "G", "4X", "4GG", "-4G", "nan"})
    EXPECT_ERROR(parse_memory(wrong, "--memory"), kUsage, "--memory");
  EXPECT_ERROR(parse_memory("1K", "--memory"), kUsage, "must be at least 1M");
}

// A machine with 8 GiB free, in a container.
class Container : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    make_folders(std::filesystem::path(folder_.path() + path).parent_path().string());
    write_atomic(folder_.path() + path, text);
  }
  void SetUp() override { write("/proc/meminfo", "MemTotal:  16777216 kB\nMemFree: 1 kB\nMemAvailable:  8388608 kB\n"); }

  TempFolder folder_;
};

TEST_F(Container, WithoutGroupsTheMachineDecides) {
  EXPECT_EQ(available_memory(folder_.path()), std::int64_t{8} << 30);
}

TEST_F(Container, TheTightestGroupAroundTheProcessDecides) {
  write("/proc/self/cgroup", "0::/outer/inner\n");
  write("/sys/fs/cgroup/outer/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/outer/memory.current", "629145600\n");
  write("/sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 104857600\nfile 7\n");
  write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("/sys/fs/cgroup/outer/inner/memory.current", "1000\n");
  EXPECT_EQ(available_memory(folder_.path()), 1073741824 - (629145600 - 104857600));
}

TEST_F(Container, GroupsOfTheFirstVersionCountToo) {
  write("/proc/self/cgroup", "7:cpu,cpuacct:/x\n4:memory:/docker/abc\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2147483648\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(available_memory(folder_.path()), 2147483648 - 1000);
}

TEST(MappedBytes, OfAFileAreItsBytes) {
  const TempFolder folder;
  write_atomic(folder.path() + "/file", std::string_view("content"));
  EXPECT_EQ(as_text(MappedBytes::of_file(folder.path() + "/file").bytes()), "content");
  write_atomic(folder.path() + "/empty", std::string_view());
  EXPECT_TRUE(MappedBytes::of_file(folder.path() + "/empty").bytes().empty());
  EXPECT_ERROR(MappedBytes::of_file("/dev/zero"), kInput, "/dev/zero: it is a device or a pipe, not a file");
  EXPECT_ERROR(read_bytes("/dev/zero"), kInput, "/dev/zero: it is a device or a pipe, not a file");
}

TEST(MappedBytes, AFileThatIsWrittenToWhileItIsReadIsFound) {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  write_atomic(path, std::string_view("content"));
  {
    const MappedBytes file = MappedBytes::of_file(path);
    EXPECT_NO_THROW(check_mapped_files_unchanged());
    write_atomic(path, std::string_view("another of its name"));
    EXPECT_NO_THROW(check_mapped_files_unchanged());
    EXPECT_EQ(as_text(file.bytes()), "content");
  }
  const MappedBytes file = MappedBytes::of_file(path);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_ERROR(check_mapped_files_unchanged(), kInput, path + " was changed while it was read");
}

TEST(MappedBytes, LargeArraysKeepWhatWasWrittenWhenTheirPagesGo) {
  const TempFolder folder;
  set_scratch_folder(folder.path());
  {
    std::vector<double, LargeAllocator<double>> numbers;
    numbers.resize(3 * kLargeBytes / sizeof(double));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    release_pages();
    bool same = true;
    for (std::size_t i = 0; i < numbers.size(); ++i) same = same && numbers[i] == static_cast<double>(i);
    EXPECT_TRUE(same);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the file has no name";
  }
  set_scratch_folder("");
}

TEST(Memory, AFileThatDoesNotFitIsRefusedBeforeItIsRead) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sparse";
  write_atomic(path, std::string_view());
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  set_memory_limit(std::int64_t{1} << 30);
  EXPECT_ERROR(read_bytes(path), kFailure, "sparse takes 1024.0 GiB, but only 1.0 GiB of memory may be taken (--memory)");
  set_memory_limit(kNoMemoryLimit);
}

}  // namespace
}  // namespace holdfast
