// Archives are read as Python's tarfile and zipfile wrote them, and damage never gets past as data.
#include <algorithm>
#include <map>

#include "holdfast/core/files.h"
#include "holdfast/core/zip.h"
#include "holdfast/data/file_tree.h"
#include "holdfast/data/tar.h"
#include "support/errors.h"
#include "support/outside.h"
#include "support/temp_folder.h"

namespace holdfast::data {
namespace {

class Archives : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TempFolder;
    made = run_python("python3", "tests/support/make_archives.py", folder->path()) == 0;
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(made) << "python3 could not make the archives"; }

  // What make_archives.py says it puts in.
  static std::map<std::string, std::string> expected() {
    std::string numbers(100000, '\0');
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<char>(i % 251);
    return {{"short.txt", "short\n"},
            {"folder/numbers.bin", numbers},
            {"folder/empty", ""},
            {"folder/" + std::string(120, 'x') + "/" + std::string(90, 'y') + ".bin", "long\n"}};
  }

  static std::map<std::string, std::string> contents(const FileTree& tree) {
    std::map<std::string, std::string> result;
    for (std::size_t i = 0; i < tree.size(); ++i) result[tree.name(i)] = as_text(tree.read(i));
    return result;
  }

  static TempFolder* folder;
  static bool made;
};
TempFolder* Archives::folder = nullptr;
bool Archives::made = false;

TEST_F(Archives, EveryFormGivesTheFilesThatWentIn) {
  for (const char* name : {"ustar.tar", "gnu.tar", "pax.tar", "plain.tar.gz", "plain.zip"}) {
    EXPECT_TRUE(contents(*open_tree(*folder / name)) == expected()) << name;  // too long to be shown
  }
}

TEST_F(Archives, MembersAreSortedByName) {
  const auto tree = open_tree(*folder / "ustar.tar");
  for (std::size_t i = 1; i < tree->size(); ++i) EXPECT_LT(tree->name(i - 1), tree->name(i));
}

TEST_F(Archives, AMemberOfAnArchiveInAnArchiveIsReached) {
  const Bytes nested = read_bytes(*folder / "nested.zip");
  EXPECT_EQ(as_text(extract(nested, "inner/plain.zip!short.txt", "nested.zip")), "short\n");
  EXPECT_ERROR(extract(nested, "inner/plain.zip!shirt.txt", "nested.zip"), kInput, "no member 'shirt.txt'");
}

TEST_F(Archives, ATarCutOffAnywhereIsRefusedOrWhole) {
  const Bytes whole = read_bytes(*folder / "gnu.tar");
  const std::size_t members = parse_tar(whole, "gnu.tar").size();
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    try {
      EXPECT_EQ(parse_tar(std::span(whole).first(size), "gnu.tar").size(), members) << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);  // all that end before the closing blocks
}

TEST_F(Archives, AZipCutOffAnywhereIsRefused) {
  const Bytes whole = read_bytes(*folder / "plain.zip");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse_zip(std::span(whole).first(size), "plain.zip"), Error) << size;
  }
}

TEST_F(Archives, AChangedByteIsRefusedOrLeavesTheContentsAlone) {
  const Bytes whole = read_bytes(*folder / "plain.zip");
  const std::string numbers = expected()["folder/numbers.bin"];
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= std::byte{0x41};
    try {
      EXPECT_TRUE(as_text(extract(damaged, "folder/numbers.bin", "plain.zip")) == numbers) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
    }
  }
}

TEST_F(Archives, ASizeThatTheBytesCannotHoldIsNotAllocated) {
  const Bytes archive = read_bytes(*folder / "plain.zip");
  std::vector<ZipMember> members = parse_zip(archive, "plain.zip");
  const auto numbers =
      std::find_if(members.begin(), members.end(), [](const ZipMember& member) { return member.name == "folder/numbers.bin"; });
  ASSERT_NE(numbers, members.end());
  numbers->size = 0xfffffff0;
  EXPECT_ERROR(extract(archive, *numbers, "plain.zip"), kInput, "claims 4294967280 bytes");
}

TEST_F(Archives, AWrongTarChecksumIsNamed) {
  Bytes archive = read_bytes(*folder / "ustar.tar");
  archive[512] ^= std::byte{1};  // the name in the second header
  EXPECT_ERROR(parse_tar(archive, "ustar.tar"), kInput, "ustar.tar: damaged tar archive: a header has a wrong checksum");
}

TEST(FileTree, AFolderGivesRelativeNamesInOrder) {
  TempFolder folder;
  make_folders(folder / "b/c");
  write_atomic(folder / "b/c/2.txt", "two");
  write_atomic(folder / "a.txt", "one");
  const auto tree = open_tree(folder.path());
  ASSERT_EQ(tree->size(), 2u);
  EXPECT_EQ(tree->name(0), "a.txt");
  EXPECT_EQ(tree->name(1), "b/c/2.txt");
  EXPECT_EQ(as_text(tree->read(1)), "two");
}

TEST(FileTree, WhatIsNeitherFolderNorArchiveIsRefused) {
  TempFolder folder;
  write_atomic(folder / "notes.txt", "text");
  EXPECT_ERROR(open_tree(folder / "notes.txt"), kInput, "neither a folder nor");
  EXPECT_ERROR(open_tree(folder / "nothing"), kInput, "no such file or folder");
}

}  // namespace
}  // namespace holdfast::data
