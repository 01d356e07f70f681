// Landlock: https://docs.kernel.org/userspace-api/landlock.html. Its numbers are written out here, because headers are often
// older than the kernel. The filter of system calls is a short list, so that it is written by hand.
#include "holdfast/core/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <system_error>

#include "holdfast/core/error.h"

namespace holdfast {
namespace sandbox {

// Rights of Landlock, in the order in which its versions brought them.
constexpr std::uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadFolder = 1 << 3, kRemoveFolder = 1 << 4,
                        kRemoveFile = 1 << 5, kMakeFolder = 1 << 7, kMakeFile = 1 << 8, kVersion1 = (1 << 13) - 1,
                        kMoveBetweenFolders = 1 << 13,  // version 2
    kTruncate = 1 << 14;                                // version 3
constexpr std::uint64_t kReading = kReadFile | kReadFolder;
constexpr std::uint64_t kWriting =
    kReading | kWriteFile | kRemoveFolder | kRemoveFile | kMakeFolder | kMakeFile | kMoveBetweenFolders | kTruncate;
constexpr std::uint64_t kOfFiles = kReadFile | kWriteFile | kTruncate;
constexpr std::uint64_t kAbstractSockets = 1 << 0, kSignals = 1 << 1;  // version 6: only within the sandbox

struct RulesetAttributes {
  std::uint64_t files = 0, network = 0, scoped = 0;
};
struct [[gnu::packed]] PathAttributes {
  std::uint64_t rights = 0;
  std::int32_t parent = -1;
};

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;  // the same on every machine

std::string reason() {
  return std::generic_category().message(errno);
}

// 0 where the kernel has none.
int landlock_version() {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, 1U);
  return version > 0 ? static_cast<int>(version) : 0;
}

bool knows_filters() {
  // A null filter is refused as such only where there are filters.
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, nullptr) == -1 && errno == EFAULT;
}

class Ruleset {
 public:
  explicit Ruleset(int version) {
    handled_ = kVersion1 | (version >= 2 ? kMoveBetweenFolders : 0) | (version >= 3 ? kTruncate : 0);
    const RulesetAttributes attributes{.files = handled_, .scoped = version >= 6 ? kAbstractSockets | kSignals : 0};
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    descriptor_ = static_cast<int>(::syscall(kCreateRuleset, &attributes, size, 0U));
    if (descriptor_ < 0) failure("the sandbox cannot be made: {}", reason());
  }
  ~Ruleset() { ::close(descriptor_); }
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;

  void allow(const std::string& path, std::uint64_t rights) {
    PathAttributes attributes{.rights = rights & handled_, .parent = ::open(path.c_str(), O_PATH | O_CLOEXEC)};
    if (attributes.parent < 0) return;  // not there, or not to be reached: nothing can be allowed
    struct stat status {};
    if (::fstat(attributes.parent, &status) == 0 && !S_ISDIR(status.st_mode)) attributes.rights &= kOfFiles;
    const bool added = attributes.rights == 0 || ::syscall(kAddRule, descriptor_, 1, &attributes, 0U) == 0;
    const int error = errno;
    ::close(attributes.parent);
    // Pipes and the like lie in no folder, and are never confined.
    if (!added && error != EBADFD) failure("the sandbox cannot allow {}: {}", path, std::generic_category().message(error));
  }
  void enter() {
    if (::syscall(kRestrictSelf, descriptor_, 0U) != 0) failure("the sandbox cannot be entered: {}", reason());
  }

 private:
  int descriptor_ = -1;
  std::uint64_t handled_ = 0;
};

// Leak checkers stop the program from another process at its end.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kProcessesAreForbidden = false;
#else
constexpr bool kProcessesAreForbidden = true;
#endif

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kMachine = 0;  // no filter is known for it
#endif

constexpr std::uint32_t kTerminalOfLinux = 0x541c;  // TIOCLINUX

constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM, kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
// The lower half, which is all that the kernel takes of what is compared here.
sock_filter load_argument(std::size_t number) {
  return load(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t));
}
// Goes on with the next instruction when the number is `value`, else with the one behind it.
sock_filter when_equal(std::uint32_t value) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
}
sock_filter give(std::uint32_t answer) {
  return BPF_STMT(BPF_RET | BPF_K, answer);
}

// What Landlock leaves open: rights, owners and times of files, memory and messages of other processes, the kernel itself.
constexpr std::initializer_list<long> kNeverCalled {
#if defined(SYS_chmod)
  SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
#if defined(SYS_iopl)
      SYS_iopl, SYS_ioperm,
#endif
      SYS_fchmod, SYS_fchmodat, 452 /* fchmodat2 */, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr,
      SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget,
      SYS_semget, SYS_mq_open, SYS_mq_unlink, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_perf_event_open, SYS_userfaultfd,
      SYS_rt_sigqueueinfo, SYS_tkill, 424 /* pidfd_send_signal */, 434 /* pidfd_open */, 438 /* pidfd_getfd */,
      440 /* process_madvise */, SYS_kcmp, SYS_chroot, SYS_pivot_root, SYS_umount2, 428 /* open_tree */, 429 /* move_mount */,
      430 /* fsopen */, 442 /* mount_setattr */, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_sethostname, SYS_setdomainname,
      SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_init_module, SYS_finit_module, SYS_delete_module,
      SYS_kexec_load, SYS_acct, SYS_quotactl
};

std::vector<sock_filter> filter(bool sockets) {
  // Calls of another machine's kind have other numbers.
  std::vector<sock_filter> program{load(offsetof(seccomp_data, arch)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
                                   give(kRefuse), load(offsetof(seccomp_data, nr))};
#if defined(__x86_64__)
  program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), give(kRefuse)});
#endif
  // io_uring opens sockets without a system call for each.
  std::vector<long> refused{SYS_io_uring_setup, SYS_bpf, SYS_mount, SYS_unshare, SYS_setns};
  refused.insert(refused.end(), kNeverCalled);
  if (!sockets) refused.insert(refused.end(), {SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4});
  if (kProcessesAreForbidden) {
    refused.insert(refused.end(), {SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev});
#if defined(__x86_64__)
    refused.insert(refused.end(), {SYS_fork, SYS_vfork});
#endif
  }
  for (const long call : refused) program.insert(program.end(), {when_equal(static_cast<std::uint32_t>(call)), give(kRefuse)});
  // Signals for this process only. The program's own are sent so when it ends itself.
  const auto own = static_cast<std::uint32_t>(::getpid());
  for (const long call : {SYS_kill, SYS_tgkill, SYS_rt_tgsigqueueinfo}) {
    program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 4), load_argument(0),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own, 0, 1), give(SECCOMP_RET_ALLOW), give(kRefuse)});
  }
  // What is put into a terminal as if it had been typed is read by the shell, when the program has ended.
  program.insert(
      program.end(),
      {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5), load_argument(1), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 2, 0),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kTerminalOfLinux, 1, 0), give(SECCOMP_RET_ALLOW), give(kRefuse)});
  if (kProcessesAreForbidden) {
    // A thread is a clone that shares all with its parent. What clone3 is to make lies in memory, which a filter cannot read; the
    // C library takes clone where there is no clone3.
    program.insert(program.end(), {when_equal(SYS_clone3), give(kUnknown)});
    program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3), load_argument(0),
                                   BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0), give(kRefuse)});
  }
  program.push_back(give(SECCOMP_RET_ALLOW));
  return program;
}

void confine_calls(bool sockets) {
  std::vector<sock_filter> program = filter(sockets);
  const sock_fprog code{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &code) != 0)
    failure("the sandbox cannot be entered: {}", reason());
}

Sandbox& state() {
  static Sandbox entered;
  return entered;
}

}  // namespace sandbox

Sandbox available_sandbox() {
  return {.files = sandbox::landlock_version() > 0, .sockets = sandbox::kMachine != 0 && sandbox::knows_filters()};
}

Sandbox enter_sandbox(const SandboxRules& rules) {
  const Sandbox possible = available_sandbox();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) failure("the sandbox cannot be entered: {}", sandbox::reason());
  if (possible.files) {
    sandbox::Ruleset ruleset(sandbox::landlock_version());
    for (const std::string& path : rules.read) ruleset.allow(path, sandbox::kReading);
    for (const std::string& path : rules.write) ruleset.allow(path, sandbox::kWriting);
    for (const std::string& path : rules.parents) ruleset.allow(path, sandbox::kMakeFolder | sandbox::kRemoveFolder);
    ruleset.enter();
  }
  if (possible.sockets) sandbox::confine_calls(rules.sockets);
  sandbox::state() = {.files = possible.files, .sockets = possible.sockets && !rules.sockets};
  return sandbox::state();
}

Sandbox current_sandbox() {
  return sandbox::state();
}

}  // namespace holdfast
