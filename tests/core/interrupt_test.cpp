#include "holdfast/core/interrupt.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace holdfast {
namespace {

// The wait status of a child process that runs `code` and exits with what it returns.
int status_of_child(const std::function<int()>& code) {
  const pid_t child = fork();
  if (child == 0) _exit(code());
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(Interrupt, ARequestIsSeenUntilCleared) {
  EXPECT_FALSE(interrupted());
  EXPECT_NO_THROW(throw_if_interrupted());
  request_interrupt();
  EXPECT_TRUE(interrupted());
  EXPECT_ERROR(throw_if_interrupted(), kInterrupted, "interrupted");
  clear_interrupt();
  EXPECT_FALSE(interrupted());
}

TEST(Interrupt, TheFirstSignalAsksAndTheSecondEnds) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const int first = status_of_child([&] {
      catch_signals();
      std::raise(signal);
      return interrupted() ? 42 : 1;
    });
    ASSERT_TRUE(WIFEXITED(first));
    EXPECT_EQ(WEXITSTATUS(first), 42);

    const int second = status_of_child([&] {
      catch_signals();
      std::raise(SIGINT);
      std::raise(signal);
      return 42;
    });
    ASSERT_TRUE(WIFSIGNALED(second));
    EXPECT_EQ(WTERMSIG(second), signal);
  }
}

}  // namespace
}  // namespace holdfast
