#include "holdfast/core/new_folders.h"

#include <filesystem>
#include <optional>

#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

TEST(NewFolders, GoAgainWhenNothingWasWritten) {
  const TempFolder folder;
  {
    const NewFolders made(folder / "a/b/");
    EXPECT_TRUE(folder_exists(folder / "a/b"));
  }
  EXPECT_FALSE(folder_exists(folder / "a"));
  EXPECT_TRUE(folder_exists(folder.path()));
}

TEST(NewFolders, StayWithWhatWasWritten) {
  const TempFolder folder;
  {
    const NewFolders made(folder / "a/b/c");
    write_atomic(folder / "a/b/file", "text");
  }
  EXPECT_FALSE(folder_exists(folder / "a/b/c"));
  EXPECT_EQ(read_text(folder / "a/b/file"), "text");
}

TEST(NewFolders, FoldersThatWereThereStayEmpty) {
  const TempFolder folder;
  make_folders(folder / "a");
  std::optional<NewFolders> first(std::in_place, folder / "a/b");
  const NewFolders moved(std::move(*first));
  first.reset();
  EXPECT_TRUE(folder_exists(folder / "a/b")) << "what was moved from owns nothing";
  { const NewFolders again(folder / "a/b"); }
  EXPECT_TRUE(folder_exists(folder / "a/b")) << "it was there already";
}

TEST(NewFolders, AFileInTheWayIsAFailureAndLeavesNothing) {
  const TempFolder folder;
  write_atomic(folder / "file", "text");
  EXPECT_ERROR(NewFolders(folder / "file/a"), kFailure, "cannot make the folder");
  EXPECT_EQ(read_text(folder / "file"), "text");
}

}  // namespace
}  // namespace holdfast
