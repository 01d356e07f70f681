// What is wrong with a command line, in one sentence: in front of CLI11, which would take a flag for another flag's value or
// print its general help for a command that does not exist, and behind it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace holdfast::cli {

// The subcommand that was being parsed, or the program itself.
const CLI::App* chosen(const CLI::App& app);

// Throws kUsage for a command that does not exist and for a flag whose value is missing. `arguments` without the program's name.
void check_arguments(const CLI::App& app, const std::vector<std::string>& arguments);

// CLI11's sentence, without its line breaks, with the nearest flag or command where one was misspelt.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace holdfast::cli
