// Subcommands. Each lives in a file of its own and adds itself to the program; main's table lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "holdfast/core/communicator.h"
#include "holdfast/core/interrupt.h"

namespace holdfast::cli {

// What a subcommand leaves for main: the exit code (0, or 1 for a gate that was not met). Errors are exceptions.
struct Outcome {
  int exit_code = 0;
  std::vector<std::string> arguments;                    // the command line, for manifests
  std::string when_interrupted = "nothing was written";  // what an interrupt leaves behind, and how to go on
  std::unique_ptr<Communicator> ranks = nullptr;         // the processes that do the same command together; null: this one alone

  void keeps(const std::string& note) {
    when_interrupted = note;
    set_interrupt_note(note);
  }
};

void add_list(CLI::App& app, Outcome& outcome);
void add_describe(CLI::App& app, Outcome& outcome);
void add_data(CLI::App& app, Outcome& outcome);
void add_train(CLI::App& app, Outcome& outcome);
void add_explain(CLI::App& app, Outcome& outcome);
void add_attack(CLI::App& app, Outcome& outcome);
void add_measure(CLI::App& app, Outcome& outcome);
void add_audit(CLI::App& app, Outcome& outcome);
void add_certify(CLI::App& app, Outcome& outcome);
void add_reproduce(CLI::App& app, Outcome& outcome);
void add_report(CLI::App& app, Outcome& outcome);
void add_leaderboard(CLI::App& app, Outcome& outcome);
void add_survey(CLI::App& app, Outcome& outcome);
void add_verify(CLI::App& app, Outcome& outcome);
void add_completion(CLI::App& app, Outcome& outcome);

}  // namespace holdfast::cli
