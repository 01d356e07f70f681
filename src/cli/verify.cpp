// holdfast verify: is a finished run what it says?
#include <cstdio>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/json.h"
#include "holdfast/core/log.h"
#include "holdfast/core/words.h"
#include "holdfast/experiment/verify_run.h"

namespace holdfast::cli {
namespace {

struct VerifyCommand {
  std::string run, device = "cpu";
  bool json = false, quiet = false;
};

void run(const VerifyCommand& flags) {
  CommonFlags common;
  common.device = flags.device;
  common.quiet = flags.quiet;
  common.apply();
  const RunVerification found = verify_run(flags.run, common.torch_device());
  if (flags.json) {
    std::fputs(dump_json({{"files", found.files},
                          {"rows", found.rows},
                          {"samples", found.samples},
                          {"largest_difference", found.largest_difference},
                          {"skipped", found.skipped}})
                   .c_str(),
               stdout);
    return;
  }
  for (const std::string& row : found.skipped) log_warning("not recomputed: {}", row);
  fmt::print("{} as the run left them; {} of {} recomputed from model and stored inputs, largest difference {:.2g}\n",
             counted(found.files, "file"), counted(found.samples, "sample"), counted(found.rows, "row"),
             found.largest_difference);
}

}  // namespace

void add_verify(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<VerifyCommand>();
  CLI::App* command =
      add_command(app, "verify", "Checks a finished audit: are its files unchanged, and do its worst samples come out the same?",
                  "holdfast verify runs/audit");
  command->add_option("RUN", flags->run, "Run folder")->required();
  command->add_option("--device", flags->device, "cpu, cuda or cuda:N")->capture_default_str();
  command->add_flag("--json", flags->json, "Print the counts as JSON");
  command->add_flag("--quiet", flags->quiet, "Only warnings and errors");
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
