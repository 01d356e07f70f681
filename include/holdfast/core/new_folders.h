// Folders for output that leave no trace when there was none.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

// Makes the folder and its parents at once, so that nothing is in the way of the output later. Those it made are removed
// again at the end if nothing was written to them: a refusal, a failure or Ctrl-C leaves no empty folders.
class NewFolders {
 public:
  explicit NewFolders(const std::string& path);  // throws kFailure
  ~NewFolders();
  NewFolders(NewFolders&& other) noexcept = default;
  NewFolders& operator=(NewFolders&&) = delete;

  void remove_empty() noexcept;  // now, instead of at the end

 private:
  std::vector<std::string> made_;  // innermost first
};

}  // namespace holdfast
