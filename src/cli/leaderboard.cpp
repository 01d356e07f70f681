// holdfast leaderboard: run folders -> a page of models x threats and one JSON file a result.
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/report/html.h"

namespace holdfast::cli {

void add_leaderboard(CLI::App& app, Outcome&) {
  struct Flags {
    std::vector<std::string> runs;
    std::string out;
    bool quiet = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      add_command(app, "leaderboard", "Makes a page that ranks models, from finished audits, and one JSON file for each result",
                  "holdfast leaderboard runs/audit --out runs/board");
  command->add_option("RUN", flags->runs, "Run folders of `holdfast audit`")->required();
  command->add_option("--out", flags->out, "Folder of the page, index.html, and of results/")->required();
  command->add_flag("--quiet", flags->quiet, "Only warnings and errors");
  command->callback([flags] {
    if (flags->quiet) set_log_level(LogLevel::kWarning);
    check_writable_folder(flags->out);
    for (const std::string& run : flags->runs) (void)run_is_unchanged(run);  // refuses one that was changed
    write_leaderboard(flags->runs, flags->out);
    log_info("leaderboard: {}/index.html", flags->out);
  });
}

}  // namespace holdfast::cli
