// --sandbox: the process is confined once, when its arguments are known and before any file is read for its contents.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "holdfast/core/new_folders.h"
#include "holdfast/core/sandbox.h"

namespace holdfast::cli {

class ProcessSandbox {
 public:
  // Adds --sandbox to every command that opens files of others, and enters the sandbox before the command starts. `then` is
  // called in it, with the command's name. Call it when all commands are there; the object must live as long as the command runs.
  void add_to(CLI::App& app, const std::function<void(const std::string&)>& then);

 private:
  void enter(const CLI::App& command);
  SandboxRules rules_for(const CLI::App& command);
  void allow_output(const std::string& path, bool is_file, SandboxRules& rules);

  std::string mode_ = "auto";
  std::vector<NewFolders> folders_;  // a rule needs a folder that is there; those that stay empty go again
};

// The paths that a text names and that are there: "mlp:model.safetensors", "csv(path=a.csv,label=y)", "seed=1". Relative ones are
// looked for in every one of `bases`.
std::vector<std::string> named_paths(const std::string& text, const std::vector<std::string>& bases);

}  // namespace holdfast::cli
