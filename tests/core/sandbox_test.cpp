// The sandbox as the kernel holds it: each test enters it in a process of its own and tries what it forbids.
#include "holdfast/core/sandbox.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "holdfast/core/files.h"
#include "support/errors.h"
#include "support/temp_folder.h"

namespace holdfast {
namespace {

// Runs `trial` in a process of its own; gives what it gives, or -1 when it was killed.
int in_a_process(const std::function<int()>& trial) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(trial());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int error_of_opening(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  const int error = descriptor < 0 ? errno : 0;
  if (descriptor >= 0) ::close(descriptor);
  return error;
}

class SandboxedFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available_sandbox().files) GTEST_SKIP() << "this kernel has no Landlock";
    make_folders(folder / "out");
    make_folders(folder / "parent/empty");
    make_folders(folder / "named");
    for (const char* name : {"named/in.txt", "secret.txt", "single.txt", "writable.txt", "parent/kept.txt"})
      write_atomic(folder / name, "text");
    rules.read = {folder / "named", folder / "single.txt", folder / "not_there"};
    rules.write = {folder / "out", folder / "writable.txt"};
    rules.parents = {folder / "parent"};
  }

  int tried(const std::function<int()>& trial) {
    return in_a_process([&] {
      enter_sandbox(rules);
      return trial();
    });
  }

  TempFolder folder;
  SandboxRules rules;
};

TEST_F(SandboxedFiles, ReadWhatWasNamedAndNothingElse) {
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "named/in.txt", O_RDONLY); }), 0);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "single.txt", O_RDONLY); }), 0);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "secret.txt", O_RDONLY); }), EACCES);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "named/../secret.txt", O_RDONLY); }), EACCES);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "not_there", O_RDONLY); }), ENOENT);  // the message stays the right one
  EXPECT_EQ(tried([&] { return error_of_opening(folder.path(), O_RDONLY | O_DIRECTORY); }), EACCES);
}

TEST_F(SandboxedFiles, WriteBeneathTheOutputAndNowhereElse) {
  EXPECT_EQ(tried([&] {
              write_atomic(folder / "out/new.txt", "with a temporary name, renamed");
              make_folders(folder / "out/deep/er");
              write_atomic(folder / "out/deep/er/x", "text");
              remove_folder(folder / "out/deep");
              return error_of_opening(folder / "writable.txt", O_WRONLY | O_TRUNC);
            }),
            0);
  EXPECT_TRUE(file_exists(folder / "out/new.txt"));
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "new.txt", O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "named/in.txt", O_WRONLY); }), EACCES);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "single.txt", O_WRONLY | O_TRUNC); }), EACCES);
  EXPECT_EQ(tried([&] { return ::unlink((folder / "secret.txt").c_str()) == 0 ? 0 : errno; }), EACCES);
  EXPECT_EQ(tried([&] { return ::truncate((folder / "secret.txt").c_str(), 0) == 0 ? 0 : errno; }), EACCES);
  EXPECT_EQ(tried([&] { return ::symlink("/etc", (folder / "out/link").c_str()) == 0 ? 0 : errno; }), EACCES);
  EXPECT_EQ(read_text(folder / "secret.txt"), "text");
}

TEST_F(SandboxedFiles, ParentsTakeFoldersOnly) {
  EXPECT_EQ(tried([&] { return ::mkdir((folder / "parent/new").c_str(), 0777) == 0 ? 0 : errno; }), 0);
  EXPECT_EQ(tried([&] { return ::rmdir((folder / "parent/empty").c_str()) == 0 ? 0 : errno; }), 0);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "parent/x", O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(tried([&] { return error_of_opening(folder / "parent/kept.txt", O_RDONLY); }), EACCES);
}

TEST_F(SandboxedFiles, HoldsInThreadsThatAreStartedLater) {
  EXPECT_EQ(tried([&] {
              int error = 0;
              std::jthread([&] { error = error_of_opening(folder / "secret.txt", O_RDONLY); }).join();
              return error;
            }),
            EACCES);
}

class SandboxedCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!available_sandbox().sockets) GTEST_SKIP() << "this kernel has no filters of system calls";
  }
  static int tried(const SandboxRules& rules, const std::function<int()>& trial) {
    return in_a_process([&] {
      enter_sandbox(rules);
      return trial();
    });
  }
};

int error_of_socket(int family) {
  const int descriptor = ::socket(family, SOCK_STREAM, 0);
  return descriptor < 0 ? errno : 0;
}

TEST_F(SandboxedCalls, OpenNoSocketUnlessAllowed) {
  for (const int family : {AF_INET, AF_INET6, AF_UNIX}) {
    EXPECT_EQ(tried({}, [&] { return error_of_socket(family); }), EPERM) << family;
  }
  EXPECT_EQ(tried({.sockets = true}, [] { return error_of_socket(AF_UNIX); }), 0);
}

TEST_F(SandboxedCalls, SendSignalsToThemselvesOnly) {
  EXPECT_EQ(tried({}, [] { return ::kill(::getppid(), 0) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({}, [] { return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({}, [] { return ::kill(::getpid(), 0) == 0 && ::raise(SIGCONT) == 0 ? 0 : errno; }), 0);
}

TEST_F(SandboxedCalls, ChangeNoRightsOwnersAndTimesOfFiles) {
  const TempFolder folder;
  const std::string path = folder / "kept.txt";
  write_atomic(path, "text");
  EXPECT_EQ(tried({}, [&] { return ::chmod(path.c_str(), 0777) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({}, [&] { return ::fchmodat(AT_FDCWD, path.c_str(), 0777, 0) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({}, [&] { return ::chown(path.c_str(), ::getuid(), ::getgid()) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({}, [&] { return ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0 ? 0 : errno; }), EPERM);
}

// A shell that waits behind the program would run it. Here the file is no terminal, so that the kernel itself says ENOTTY.
TEST_F(SandboxedCalls, PutNothingIntoTheTerminal) {
  const TempFolder folder;
  write_atomic(folder / "x", "text");
  const int file = ::open((folder / "x").c_str(), O_RDONLY | O_CLOEXEC);
  const auto type = [&] { return ::ioctl(file, TIOCSTI, "x") == 0 ? 0 : errno; };
  EXPECT_EQ(type(), ENOTTY);
  EXPECT_EQ(tried({}, type), EPERM);
  EXPECT_EQ(tried({},
                  [&] {
                    int waiting = 0;
                    return ::ioctl(file, FIONREAD, &waiting) == 0 ? 0 : errno;
                  }),
            0);
  ::close(file);
}

#if !defined(__SANITIZE_ADDRESS__)
TEST_F(SandboxedCalls, StartNoProgramAndNoProcessButThreads) {
  EXPECT_EQ(tried({}, [] { return ::execl("/bin/true", "true", nullptr) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({.sockets = true}, [] { return ::execl("/bin/true", "true", nullptr) == 0 ? 0 : errno; }), EPERM);
  EXPECT_EQ(tried({},
                  [] {
                    const pid_t child = ::fork();
                    if (child == 0) ::_exit(0);
                    return child < 0 ? errno : 0;
                  }),
            EPERM);
  EXPECT_EQ(tried({},
                  [] {
                    int answer = 0;
                    std::jthread([&] { answer = 7; }).join();
                    return answer;
                  }),
            7);
}
#endif

TEST(Sandbox, SaysWhatItConfines) {
  EXPECT_FALSE(current_sandbox().files || current_sandbox().sockets);
  const Sandbox possible = available_sandbox();
  EXPECT_EQ(in_a_process([&] {
              enter_sandbox({});
              return current_sandbox().files == possible.files && current_sandbox().sockets == possible.sockets ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace holdfast
