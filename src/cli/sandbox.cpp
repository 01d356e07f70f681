#include "sandbox.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/rank_place.h"
#include "holdfast/data/source.h"
#include "usage.h"

namespace holdfast::cli {
namespace {

namespace fs = std::filesystem;

// These run no model: `data` needs the network, the others read nothing.
constexpr std::array<std::string_view, 3> kUnconfined{"data", "list", "completion"};
constexpr std::array<std::string_view, 4> kOutIsAFile{"explain", "measure", "report", "survey"};
constexpr std::array<const char*, 5> kOutputs{"--out", "--png", "--models", "--cells", "--results"};

// Libraries, what they look at when they start, and facts about the machine.
constexpr std::array<const char*, 32> kSystem{"/usr",
                                              "/lib",
                                              "/lib32",
                                              "/lib64",
                                              "/opt",
                                              "/nix/store",
                                              "/etc/ld.so.cache",
                                              "/etc/ld.so.conf",
                                              "/etc/ld.so.conf.d",
                                              "/etc/localtime",
                                              "/etc/ssl/openssl.cnf",
                                              "/etc/pki/tls/openssl.cnf",
                                              "/etc/fonts",
                                              "/etc/nsswitch.conf",
                                              "/etc/hosts",
                                              "/etc/host.conf",
                                              "/etc/resolv.conf",
                                              "/etc/gai.conf",
                                              "/proc/self",
                                              "/proc/sys",
                                              "/proc/cpuinfo",
                                              "/proc/filesystems",
                                              "/proc/loadavg",
                                              "/proc/meminfo",
                                              "/proc/stat",
                                              "/proc/uptime",
                                              "/proc/version",
                                              "/sys",
                                              "/dev/null",
                                              "/dev/zero",
                                              "/dev/random",
                                              "/dev/urandom"};

template <class Names>
bool is_among(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// Folders of the libraries that are loaded: torch's may lie anywhere, and it opens others beside them.
std::vector<std::string> library_folders() {
  std::set<std::string> folders;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const fs::path folder = fs::path(info->dlpi_name).parent_path();
        if (folder.is_absolute()) static_cast<std::set<std::string>*>(found)->insert(folder.string());
        return 0;
      },
      &folders);
  return {folders.begin(), folders.end()};
}

// Some datasets come with Python packages, which are looked for: X/lib of X/lib/python3.11/site-packages.
std::vector<std::string> python_folders() {
  std::vector<std::string> folders;
  for (const std::string& packages : data::python_package_folders("."))
    folders.push_back(fs::path(packages).lexically_normal().parent_path().parent_path().parent_path().string());
  return folders;
}

// Where the links in a folder of datasets lead: people keep large datasets on other disks. Those of a dataset's own folder count
// too.
std::vector<std::string> linked_from(const std::string& folder) {
  std::vector<std::string> targets;
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    if (!entry->is_symlink(ignored)) continue;
    const fs::path target = fs::canonical(entry->path(), ignored);
    if (!ignored) targets.push_back(target.string());
  }
  return targets;
}

// The texts between quotation marks of a TOML or JSON file. It need not be a sound one: who reads it says so.
std::vector<std::string> quoted_texts(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char mark = text[at];
    if (mark != '"' && mark != '\'') continue;
    std::string inside;
    std::size_t end = at + 1;
    for (; end < text.size() && text[end] != mark && text[end] != '\n'; ++end) {
      if (mark == '"' && text[end] == '\\' && end + 1 < text.size()) ++end;
      inside += text[end];
    }
    if (end < text.size() && text[end] == mark) {
      found.push_back(std::move(inside));
      at = end;
    }
  }
  return found;
}

bool is_regular(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// What a file names: paths relative to it, or to where the program runs.
void add_paths_in(const std::string& file, std::vector<std::string>& paths) {
  if (!is_regular(file)) return;
  const std::string folder = fs::path(file).parent_path().string();
  for (const std::string& text : quoted_texts(read_text(file))) {
    const std::vector<std::string> named = named_paths(text, {".", folder.empty() ? "." : folder});
    paths.insert(paths.end(), named.begin(), named.end());
  }
}

}  // namespace

std::vector<std::string> named_paths(const std::string& text, const std::vector<std::string>& bases) {
  std::set<std::string> pieces{text};
  for (std::size_t at = text.find_first_of(":=,("); at != std::string::npos; at = text.find_first_of(":=,(", at + 1)) {
    const std::string rest = text.substr(at + 1);
    pieces.insert(rest);
    pieces.insert(rest.substr(0, rest.find_last_not_of(')') + 1));
    pieces.insert(rest.substr(0, rest.find_first_of(",)")));
  }
  std::set<std::string> paths;
  for (const std::string& piece : pieces) {
    const std::size_t first = piece.find_first_not_of(" '\""), last = piece.find_last_not_of(" '\"");
    if (first == std::string::npos) continue;
    const std::string name = piece.substr(first, last - first + 1);
    if (name.find_first_not_of('/') == std::string::npos || name.size() > 4096) continue;
    for (const std::string& base : bases) {
      const std::string path = name.front() == '/' ? name : (fs::path(base) / name).string();
      if (file_exists(path) || folder_exists(path)) paths.insert(path);
    }
  }
  return {paths.begin(), paths.end()};
}

void ProcessSandbox::add_to(CLI::App& app, const std::function<void(const std::string&)>& then) {
  for (CLI::App* command : app.get_subcommands({})) {
    if (is_among(kUnconfined, command->get_name())) continue;
    command
        ->add_option("--sandbox", mode_,
                     "auto, on or off: write only to the output, read only what is named, open no sockets (docs/trust.md)")
        ->capture_default_str();
  }
  app.parse_complete_callback([this, &app, then] {
    const CLI::App* command = app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
    if (command == nullptr || is_among(kUnconfined, command->get_name())) return;
    enter(*command);
    then(command->get_name());
  });
}

void ProcessSandbox::enter(const CLI::App& command) {
  if (mode_ != "auto" && mode_ != "on" && mode_ != "off") usage_error("--sandbox {}: must be auto, on or off", mode_);
  if (mode_ == "off") return;
  const CLI::Option* device = command.get_option_no_throw("--device");
  // Drivers open files and sockets of their own.
  const bool on_gpu = device != nullptr && device->count() > 0 && device->results().back() != "cpu";
  if (mode_ == "auto" && on_gpu) return;
  if (mode_ == "on" && on_gpu) usage_error("--sandbox on: only the CPU can be confined; take --device cpu or --sandbox off");
  const Sandbox possible = available_sandbox();
  if (mode_ == "on" && !(possible.files && possible.sockets)) {
    input_error("--sandbox on: this kernel cannot confine {}; leave the flag out to run with what it can",
                possible.files ? "sockets (seccomp)" : "files (Landlock)");
  }
  enter_sandbox(rules_for(command));
}

SandboxRules ProcessSandbox::rules_for(const CLI::App& command) {
  SandboxRules rules{.read = {kSystem.begin(), kSystem.end()}, .write = {"/dev/null", "/proc/self/fd/1", "/proc/self/fd/2"}};
  rules.sockets = rank_place().is_one_of_many();
  for (const auto& folders : {library_folders(), python_folders(), {data::data_folder()}, linked_from(data::data_folder())})
    rules.read.insert(rules.read.end(), folders.begin(), folders.end());
  if (is_set("HOLDFAST_FONT")) rules.read.push_back(std::getenv("HOLDFAST_FONT"));

  const bool out_is_file = is_among(kOutIsAFile, command.get_name());
  const CLI::App& innermost = *chosen(command);
  for (const CLI::Option* option : innermost.get_options()) {
    const bool is_output =
        std::any_of(kOutputs.begin(), kOutputs.end(), [&](const char* name) { return option->check_name(name); });
    for (const std::string& value : option->results()) {
      if (is_output) {
        allow_output(value, out_is_file && option->check_name("--out"), rules);
        continue;
      }
      const std::vector<std::string> named = named_paths(value, {"."});
      for (const std::string& path : named) {
        rules.read.push_back(path);
        rules.read.push_back((fs::path(path).parent_path() / "schema.json").string());  // `measure` looks for it beside maps
      }
      if (value.ends_with(".toml")) add_paths_in(value, rules.read);
      if (command.get_name() == "verify") add_paths_in(value + "/manifest.json", rules.read);
      if (command.get_name() == "reproduce") {  // --check reads kept results and their manifest, named with or without .json
        const std::string stem = value.ends_with(".json") ? value.substr(0, value.size() - 5) : value;
        for (const char* ending : {".json", ".manifest.json"}) rules.read.push_back(stem + ending);
      }
    }
  }
  return rules;
}

void ProcessSandbox::allow_output(const std::string& path, bool is_file, SandboxRules& rules) {
  if (path.empty()) return;
  if (file_exists(path) && !is_regular(path)) {  // a device or a pipe
    rules.write.push_back(path);
    return;
  }
  fs::path folder = fs::path(path);
  if (!folder.has_filename()) folder = folder.parent_path();  // "runs/"
  if (is_file) folder = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
  // A file is first written under another name beside it, so the folder is what it takes.
  check_writable_folder(folder.string());
  fs::path parent = fs::absolute(folder).lexically_normal();
  do {
    parent = parent.parent_path();
    rules.parents.push_back(parent.string());
  } while (!folder_exists(parent.string()) && parent.has_relative_path());
  if (!folder_exists(folder.string())) folders_.emplace_back(folder.string());
  rules.write.push_back(folder.string());
}

}  // namespace holdfast::cli
