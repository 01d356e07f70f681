#include "holdfast/core/folder_lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

TEST(FolderLock, TheSecondIsRefusedUntilTheFirstIsGone) {
  const TempFolder folder;
  std::optional<FolderLock> first(std::in_place, folder.path());
  EXPECT_ERROR(FolderLock(folder.path()), kUsage, "another process is writing to " + folder.path());
  FolderLock moved(std::move(*first));
  first.reset();
  EXPECT_ERROR(FolderLock(folder.path()), kUsage, "another process");
}

TEST(FolderLock, MayBeAskedForWithoutAnError) {
  const TempFolder folder;
  std::optional<FolderLock> first = FolderLock::if_free(folder.path());
  ASSERT_TRUE(first);
  EXPECT_FALSE(FolderLock::if_free(folder.path()));
  first.reset();
  EXPECT_TRUE(FolderLock::if_free(folder.path()));
  EXPECT_ERROR(FolderLock::if_free(folder / "none"), kInput, "none: No such file or directory");
}

TEST(FolderLock, IsFreeAgainAfterwardsAndLeavesNothing) {
  const TempFolder folder;
  { const FolderLock lock(folder.path()); }
  EXPECT_NO_THROW(FolderLock(folder.path()));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderLock, AKilledHolderLetsGo) {
  const TempFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder.path());
    (void)!write(ready[1], "x", 1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_ERROR(FolderLock(folder.path()), kUsage, "another process");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_NO_THROW(FolderLock(folder.path()));
}

TEST(FolderLock, AFolderThatIsNotThereIsOneSentence) {
  const TempFolder folder;
  EXPECT_ERROR(FolderLock(folder / "none"), kInput, "none: No such file or directory");
}

}  // namespace
}  // namespace holdfast
