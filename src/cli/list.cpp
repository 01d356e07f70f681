// holdfast list: every method, one line each.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "catalogue.h"
#include "command.h"
#include "common.h"
#include "holdfast/core/error.h"
#include "holdfast/core/method.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct ListCommand {
  std::string kind;
  bool json = false;
};

void run(const ListCommand& flags) {
  const std::vector<std::string> kinds = catalogue_kinds();
  if (!flags.kind.empty() && std::find(kinds.begin(), kinds.end(), flags.kind) == kinds.end())
    usage_error("list: unknown kind '{}'{}", flags.kind, suggestion(flags.kind, kinds));
  Json found = Json::object();
  for (const auto& [kind, infos] : catalogue()) {
    if (!flags.kind.empty() && flags.kind != kind) continue;
    if (flags.json) {
      found[kind] = Json::array();
      for (const MethodInfo* info : infos) found[kind].push_back(to_json(*info));
      continue;
    }
    std::vector<std::vector<std::string>> rows;
    for (const MethodInfo* info : infos) rows.push_back({info->name, info->summary});
    std::printf("%s\n",
                rows.empty() ? (kind + ": none yet\n").c_str() : listing({kind, "what it is"}, rows, terminal_columns()).c_str());
  }
  if (flags.json) std::fputs(dump_json(found).c_str(), stdout);
}

}  // namespace

void add_list(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<ListCommand>();
  CLI::App* command = add_command(
      app, "list", "Lists all explainers, attacks, metrics, measures, objectives, recipes, models, datasets and experiments",
      "holdfast list attacks");
  command->add_option("kind", flags->kind, "Only these: explainers, attacks, metrics and so on");
  command->add_flag("--json", flags->json, "As JSON, with options, defaults and ranges");
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
