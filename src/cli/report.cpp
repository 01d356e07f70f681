// holdfast report: run folders -> one page; kept results of experiments -> one Markdown page, or a site.
#include <algorithm>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/log.h"
#include "holdfast/experiment/compare_runs.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/report/experiment.h"
#include "holdfast/report/html.h"

namespace holdfast::cli {
namespace {

struct ReportCommand {
  std::vector<std::string> runs;
  std::string out;
  bool quiet = false;
};

bool is_kept(const std::string& folder) {
  return file_exists(folder + "/verdicts.json") && !file_exists(folder + "/manifest.json");
}

// Pages of runs and of kept results are of different files; the folder says which it can be.
void check_page(const std::string& folder, const std::string& out) {
  const bool page = out.ends_with(".html"), kept = is_kept(folder), run = file_exists(folder + "/manifest.json");
  if (!page && run)
    input_error(
        "{}: this is a run, whose page is an .html; a .md page or a site is made of what `holdfast reproduce ... --results "
        "FOLDER` keeps",
        folder);
  if (page && kept) input_error("{}: these are kept results of experiments, whose page is a .md, or a site in a folder", folder);
}

// A page says what the run found, not what somebody wrote into its files.
void check_unchanged(const std::string& folder) {
  if (file_exists(folder + "/results.json")) (void)run_is_unchanged(folder);
}

bool are_audits(const std::vector<std::string>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const std::string& run) {
    return file_exists(run + "/results.json") && read_json(run + "/results.json").value("kind", "audit") == "audit";
  });
}

void run(const ReportCommand& flags) {
  if (flags.quiet) set_log_level(LogLevel::kWarning);
  for (const std::string& folder : flags.runs) check_page(folder, flags.out);
  if (!flags.out.ends_with(".md") && !flags.out.ends_with(".html") && is_kept(flags.runs.front())) {
    check_writable_folder(flags.out);
    write_site(flags.runs, flags.out);
    log_info("site: {}/index.html", flags.out);
    return;
  }
  const NewFolders folders = prepare_output_file(flags.out, {".html", ".md"});
  if (flags.out.ends_with(".md")) {
    if (flags.runs.size() != 1)
      usage_error("report: a .md page is made from one folder of kept results, not {}", flags.runs.size());
    write_atomic(flags.out, results_markdown(flags.runs.front()));
  } else {
    for (const std::string& folder : flags.runs) check_unchanged(folder);
    const bool compared = flags.runs.size() > 1 && are_audits(flags.runs);
    write_report(flags.runs, flags.out, compared ? compare_runs(flags.runs) : Json());
  }
  log_info("report: {}", flags.out);
}

}  // namespace

void add_report(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<ReportCommand>();
  CLI::App* command =
      add_command(app, "report", "Makes one page, which opens offline, from one run, or from several with their differences",
                  "holdfast report runs/audit --out runs/report.html");
  command->add_option("RUN", flags->runs, "Run folders; for a .md page or a site: folders of kept results, such as results/r2et")
      ->required();
  command
      ->add_option("--out", flags->out,
                   "The page, .html. For kept results: a .md page of verdicts, or a folder for a site of all numbers")
      ->required();
  command->add_flag("--quiet", flags->quiet, "Only warnings and errors");
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
