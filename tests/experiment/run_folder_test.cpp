#include "holdfast/experiment/run_folder.h"

#include <gtest/gtest.h>

#include "holdfast/core/files.h"
#include "support/temp_folder.h"

namespace holdfast::experiment {
namespace {

TEST(FolderClaim, EndsQuietlyWhenItsFolderIsGone) {
  const TempFolder folder;
  const auto claim_and_lose = [&](const std::string& what) {
    const FolderClaim claim = claim_run_folder(folder / "run", {{"seed", 1}});
    remove_folder(folder / what);
  };
  claim_and_lose("run/tiles");
  claim_and_lose("run");
  EXPECT_FALSE(folder_exists(folder / "run"));
}

TEST(RunFolder, ArraysHaveDigestsToo) {
  const TempFolder folder;
  make_folders(folder / "arrays/0001");
  make_folders(folder / "arrays/0000");
  write_atomic(folder / "arrays/0001/b.npy", std::string_view("b"));
  write_atomic(folder / "arrays/0000/a.npy", std::string_view("a"));
  EXPECT_EQ(array_files(folder.path()), (std::vector<std::string>{"arrays/0000/a.npy", "arrays/0001/b.npy"}));
  EXPECT_EQ(file_digests(folder.path(), array_files(folder.path())).size(), 2U);
}

}  // namespace
}  // namespace holdfast::experiment
