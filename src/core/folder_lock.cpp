#include "holdfast/core/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "holdfast/core/error.h"
#include "holdfast/core/log.h"

namespace holdfast {
namespace {

std::string lock_reason(int code) {
  return std::generic_category().message(code);
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : descriptor_(-1) {
  std::optional<FolderLock> lock = if_free(folder);
  if (!lock) usage_error("another process is writing to {}; wait for it or choose another --out", folder);
  std::swap(descriptor_, lock->descriptor_);
}

std::optional<FolderLock> FolderLock::if_free(const std::string& folder) {
  FolderLock lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.descriptor_ < 0) input_error("cannot open the folder {}: {}", folder, lock_reason(errno));
  while (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    if (code == EINTR) continue;
    if (code == EWOULDBLOCK) return std::nullopt;
    log_warning("{} cannot be locked ({}): do not start a second run in it", folder, lock_reason(code));
    break;
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace holdfast
