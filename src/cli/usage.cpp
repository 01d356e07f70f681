#include "usage.h"

#include <algorithm>

#include "holdfast/core/error.h"
#include "holdfast/core/method.h"

namespace holdfast::cli {
namespace {

std::vector<std::string> flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands({})) names.push_back(subcommand->get_name());
  return names;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  const std::string prefix = app.get_parent() == nullptr ? "" : app.get_name() + ": ";
  return fmt::format("{}unknown command '{}'{}", prefix, word, suggestion(word, commands(app)));
}

bool takes_value(const CLI::App& command, const std::string& flag) {
  const CLI::Option* option = command.get_option_no_throw(flag);
  return option != nullptr && option->get_items_expected_min() > 0;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

const CLI::App* chosen(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? &app : chosen(*subcommands.front());
}

void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.rfind("--", 0) == 0) {
      if (!takes_value(*command, word)) continue;
      const bool missing = i + 1 == arguments.size() || contains(flags(*command), arguments[i + 1]);
      if (missing) usage_error("{}: {} needs a value (see: holdfast {} --help)", command->get_name(), word, command->get_name());
      ++i;
    } else if (contains(commands(*command), word)) {
      command = command->get_subcommand(word);
    } else if (!commands(*command).empty() && word.rfind('-', 0) != 0) {
      usage_error("{} (see: holdfast --help)", unknown_command(*command, word));
    }
  }
}

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  const CLI::App* command = chosen(app);
  for (const std::string& word : command->remaining(true)) {
    if (word.rfind("--", 0) == 0) {
      const std::string flag = word.substr(0, word.find('='));
      return fmt::format("{}: unknown flag {}{}", command->get_name(), flag, suggestion(flag, flags(*command)));
    }
  }
  return command == &app ? message : fmt::format("{}: {}", command->get_name(), message);
}

}  // namespace holdfast::cli
