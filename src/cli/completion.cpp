// holdfast completion bash: commands, flags and method names for the shell, from the same lists as the help.
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "catalogue.h"
#include "command.h"
#include "common.h"
#include "holdfast/core/error.h"

namespace holdfast::cli {
namespace {

// Methods of one kind of the catalogue; of all kinds where it is empty.
std::vector<std::string> method_names(const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& [kind, infos] : catalogue()) {
    if (!wanted.empty() && kind != wanted) continue;
    for (const MethodInfo* info : infos) names.push_back(info->name);
  }
  return names;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// `data` and `survey` have commands of their own.
std::string words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* inner : command.get_subcommands({})) {
    words.push_back(inner->get_name());
    for (const std::string& flag : flags_of(*inner)) words.push_back(flag);
  }
  for (const std::string& flag : flags_of(command)) words.push_back(flag);
  return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_script(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    commands += (commands.empty() ? "" : " ") + command->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), words_of(*command));
  }
  return fmt::format(
      R"(# Bash completion of holdfast. Load it in this shell: source <(holdfast completion bash)
_holdfast() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=""
  case $previous in
    --explainer) words="{}" ;;
    --attack) words="{}" ;;
    --metric) words="{}" ;;
    --measure) words="{}" ;;
    --norm) words="l2 linf l1" ;;
    --device) words="cpu cuda" ;;
    --scale) words="quick cpu full" ;;
    --model|--inputs|--targets|--labels|--schema|--baseline|--background|--out|--png|--compare) ;;
    describe) words="{}" ;;
    reproduce) words="{}" ;;
    *) case ${{COMP_WORDS[1]}} in
{}    esac ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="{} --help --version"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -o bashdefault -F _holdfast holdfast
)",
      fmt::join(method_names("explainers"), " "), fmt::join(method_names("attacks"), " "),
      fmt::join(method_names("metrics"), " "), fmt::join(method_names("measures"), " "), fmt::join(method_names(""), " "),
      fmt::join(method_names("experiments"), " "), cases, commands);
}

}  // namespace

void add_completion(CLI::App& app, Outcome&) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = add_command(app, "completion", "Prints a script with which the shell completes commands, flags and names",
                                  "source <(holdfast completion bash)");
  command->add_option("SHELL", *shell, "bash")->required();
  command->callback([shell, &app] {
    if (*shell != "bash") usage_error("completion: '{}' is not known; only bash is", *shell);
    std::fputs(bash_script(app).c_str(), stdout);
  });
}

}  // namespace holdfast::cli
