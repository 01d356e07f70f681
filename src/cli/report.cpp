// holdfast report: run folders -> one page; kept results of experiments -> one Markdown page.
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/report/experiment.h"
#include "holdfast/report/html.h"

namespace holdfast::cli {
namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  std::string out;
  bool quiet = false;
};

// Pages of runs and of kept results are of different files; the folder says which it can be.
void check_page(const std::string& folder, const std::string& out) {
  const bool kept = file_exists(folder + "/verdicts.json"), run = file_exists(folder + "/manifest.json");
  if (out.ends_with(".md") && run && !kept)
    input_error(
        "{}: this is a run, whose page is an .html; a .md page is made of what `holdfast reproduce ... --results FOLDER` keeps",
        folder);
  if (out.ends_with(".html") && kept && !run)
    input_error("{}: these are kept results of experiments, whose page is a .md; an .html page is made of a run", folder);
}

void run(const ReportCommand& flags) {
  if (flags.quiet) set_log_level(LogLevel::kWarning);
  for (const std::string& folder : flags.runs) check_page(folder, flags.out);
  const NewFolders folders = prepare_output_file(flags.out, {".html", ".md"});
  if (flags.out.ends_with(".md")) {
    if (flags.runs.size() != 1)
      usage_error("report: a .md page is made from one folder of kept results, not {}", flags.runs.size());
    write_atomic(flags.out, results_markdown(flags.runs.front()));
  } else {
    write_report(flags.runs, flags.out);
  }
  log_info("report: {}", flags.out);
}

}  // namespace

void add_report(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<ReportCommand>();
  CLI::App* command = add_command(app, "report", "Makes one offline page from one run or several",
                                  "holdfast report runs/audit --out runs/report.html");
  command->add_option("RUN", flags->runs, "Run folders; for a .md page a folder of kept results, such as results/r2et")
      ->required();
  command->add_option("--out", flags->out, "The page: .html, or .md for kept results of experiments")->required();
  command->add_flag("--quiet", flags->quiet, "Only warnings and errors");
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
