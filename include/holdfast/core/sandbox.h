// Confines the process, for good: what it may write, what it may read, and no sockets, programs or processes. The kernel holds it
// to that (Landlock for files, seccomp for the rest), so that it holds for code that was not meant to run too.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

struct SandboxRules {
  std::vector<std::string> read;     // files, and folders with all that is beneath; what is not there is left out
  std::vector<std::string> write;    // folders in which everything may be done; single files that may be written to
  std::vector<std::string> parents;  // folders in which folders may be made and empty ones removed, and no more
  bool sockets = false;              // may be opened
};

// What the kernel confines.
struct Sandbox {
  bool files = false;
  bool sockets = false;  // and programs and processes
};

// What enter_sandbox would confine.
Sandbox available_sandbox();

// Confines this thread and those it starts from now on. Call it once, before other threads are there. What the kernel does not
// know is left out. Throws kFailure when the kernel knows it and refuses.
Sandbox enter_sandbox(const SandboxRules& rules);

// What enter_sandbox confined; nothing before it was called.
Sandbox current_sandbox();

}  // namespace holdfast
