// holdfast train: a model from a configuration.
#include <cstdio>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/log.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/train/train_run.h"

namespace holdfast::cli {
namespace {

struct TrainCommand {
  CommonFlags common;
  std::string config, out;
  std::vector<std::string> set;
  bool json = false, restart = false;
  bool seed_given = false;
};

std::string percent_with_interval(const Json& quality, const char* key) {
  const Json& value = quality.at(key);
  if (!value.is_object() || !value.at("mean").is_number()) return "-";
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", value.at("mean").get<double>(), value.at("low").get<double>(),
                     value.at("high").get<double>());
}

void run(TrainCommand& flags, Communicator* ranks) {
  flags.common.apply();
  std::vector<std::string> overrides = flags.set;
  if (flags.seed_given) overrides.push_back(fmt::format("seed={}", flags.common.seed));
  TrainConfig config = read_train_config(Config::load(flags.config, overrides));
  config.options.device = flags.common.torch_device();
  config.options.threads = flags.common.threads;
  const Json machine = machine_facts(flags.common.threads, config.options.device.str(), ranks == nullptr ? 1 : ranks->size());
  const Json results = run_training(config, flags.out, machine, flags.restart, ranks);
  if (!leads(ranks)) return;
  if (flags.json) {
    std::fputs(dump_json(results).c_str(), stdout);
    return;
  }
  const Json& test = results.at("test");
  if (!test.is_null()) {
    std::printf("test accuracy %s, AUC %s\n", percent_with_interval(test, "accuracy").c_str(),
                percent_with_interval(test, "auc").c_str());
  }
  const std::string architecture = results.at("architecture");
  log_info("use it as --model {}:{}/model.safetensors; test samples are in {}/test",
           architecture.substr(0, architecture.find('(')), flags.out, flags.out);
}

}  // namespace

void add_train(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<TrainCommand>();
  CLI::App* command = add_command(app, "train", "Trains a model; called again on the same folder, it goes on where it stopped",
                                  "holdfast train configs/train_breast_cancer.toml --out runs/train");
  command->add_option("CONFIG", flags->config, "TOML file (docs/training.md)")->required();
  command->add_option("--out", flags->out, "Folder for model.safetensors, history.jsonl and results.json")->required();
  command->add_option("--set", flags->set, "Override a key of CONFIG: section.key=value; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--restart", flags->restart, "Train again from the start: what an earlier training left in --out is removed");
  command->add_flag("--json", flags->json, "Print results.json");
  flags->common.add_to(*command);
  command->callback([flags, command, &outcome] {
    outcome.keeps("checkpoints are kept: run the same command again to go on");
    flags->seed_given = command->count("--seed") > 0;
    run(*flags, outcome.ranks.get());
  });
}

}  // namespace holdfast::cli
