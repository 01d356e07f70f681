// holdfast measure: how alike two sets of maps are (measure_maps.cpp); with --model, a model around its samples
// (measure_model.cpp).
#include <memory>

#include "command.h"
#include "common.h"
#include "measure_maps.h"
#include "measure_model.h"

namespace holdfast::cli {
namespace {

struct MeasureCommand {
  MeasureMapsFlags maps;
  SubjectFlags subject;  // of the form with --model; its schema is both forms'
  MeasureModelFlags model;
  CommonFlags common;
  bool json = false;
  const CLI::App* command = nullptr;
};

// Finds out which of the two forms was meant, and that the flags belong to it.
bool asks_for_a_model(const MeasureCommand& flags) {
  const bool maps = !flags.maps.original.empty() || !flags.maps.metrics.empty() || !flags.maps.labels.empty();
  if (flags.subject.model.empty()) {
    if (flags.maps.original.empty() || flags.maps.perturbed.empty())
      usage_error("two files of maps are needed, ORIGINAL.npy and PERTURBED.npy, or --model and --inputs");
    if (flags.maps.metrics.empty()) usage_error("--metric is required; `holdfast list metrics` shows them");
    for (const char* flag : {"--measure", "--explainer", "--inputs", "--targets", "--baseline", "--background", "--epsilon",
                             "--endpoints", "--compare"}) {
      if (flags.command->count(flag) > 0) usage_error("{} is of a model: give --model and --inputs", flag);
    }
    return false;
  }
  if (maps) usage_error("files of maps, --metric and --labels do not go with --model; --measure says what to measure");
  if (flags.subject.inputs.empty()) usage_error("--inputs is required beside --model");
  return true;
}

void run(MeasureCommand& flags, Communicator* ranks) {
  const bool of_model = asks_for_a_model(flags);
  flags.common.apply(scratch_beside(flags.model.out));
  if (of_model) return measure_model(flags.model, flags.subject, flags.common, flags.json, ranks);
  if (!leads(ranks)) return;
  measure_maps(flags.maps, flags.subject.schema, flags.model.out, flags.common, flags.json);
}

}  // namespace

void add_measure(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<MeasureCommand>();
  CLI::App* command = add_command(
      app, "measure", "Compares two sets of explanations; with --model, measures a model around its samples",
      "holdfast measure examples/original_attributions.npy examples/perturbed_attributions.npy --metric 'top_k(k=4)'");
  flags->maps.add_to(*command);
  flags->subject.add_to(*command, false);
  flags->model.add_to(*command);
  command->add_flag("--json", flags->json, "As JSON, with a value for each sample");
  flags->common.add_to(*command);
  flags->command = command;
  command->callback([flags, &outcome] { run(*flags, outcome.ranks.get()); });
}

}  // namespace holdfast::cli
