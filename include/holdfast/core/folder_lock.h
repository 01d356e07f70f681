// One writer a folder: two runs that write the same files would mix them.
#pragma once

#include <optional>
#include <string>

namespace holdfast {

// Held from construction to destruction, on the folder itself (flock): no file is left behind, and the system lets go when a
// process dies, however it does. Two locks of one process exclude each other as well.
class FolderLock {
 public:
  // Takes the folder, which must exist. Throws kUsage at once when another holds it. File systems that have no locks are
  // passed over with a warning.
  explicit FolderLock(const std::string& folder);
  // Gives the lock, or nothing where another process holds it.
  static std::optional<FolderLock> if_free(const std::string& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace holdfast
