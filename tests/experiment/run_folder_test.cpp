#include "holdfast/experiment/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "holdfast/core/files.h"
#include "support/errors.h"
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

TEST(RunFolder, AFileThatWasExchangedMeanwhileEndsTheRun) {
  const TempFolder folder;
  const std::string model = folder / "model.pt", run = folder / "run";
  write_atomic(model, std::string_view("the model"));
  const Json identity = run_conditions(0, at::kCPU, {model, folder / "not_there"});
  make_folders(run + "/tiles/0000");
  write_atomic(run + "/tiles/plan.json", std::string_view("{}"));
  write_atomic(run + "/tiles/0000/tile", std::string_view("a result"));
  EXPECT_NO_THROW(check_files_are_as_claimed(identity, run));
  write_atomic(model, std::string_view("the model"));  // touched, and the same
  EXPECT_NO_THROW(check_files_are_as_claimed(identity, run));
  EXPECT_TRUE(file_exists(run + "/tiles/0000/tile"));
  write_atomic(model, std::string_view("another"));
  EXPECT_ERROR(check_files_are_as_claimed(identity, run), kInput, "model.pt was changed while the run read it");
  EXPECT_FALSE(file_exists(run + "/tiles/0000/tile"));
  EXPECT_TRUE(file_exists(run + "/tiles/plan.json"));
  std::filesystem::remove(model);
  ASSERT_EQ(::mkfifo(model.c_str(), 0600), 0);  // what cannot be read is not what was read
  EXPECT_ERROR(check_files_are_as_claimed(identity, run), kInput, "model.pt was changed while the run read it");
}

}  // namespace
}  // namespace holdfast::experiment
