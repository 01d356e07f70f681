// holdfast explain: maps of what mattered to a model.
#include <cstdio>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/json.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/core/words.h"
#include "holdfast/data/shown.h"
#include "holdfast/report/pictures.h"

namespace holdfast::cli {
namespace {

struct ExplainCommand {
  CommonFlags common;
  SubjectFlags subject;
  std::string explainer = "saliency", out, png;
  std::int64_t png_count = 32, png_top = 0;
  bool json = false;
};

// A column of numbers, one a sample, in a few words; null where the explainer has none.
Json summary(const at::Tensor& values) {
  if (!values.defined()) return nullptr;
  const at::Tensor sizes = values.to(at::kDouble).abs();
  const std::int64_t worst = sizes.argmax().item<std::int64_t>();
  Json json{{"mean", sizes.mean().item<double>()}, {"largest", sizes[worst].item<double>()}, {"sample", worst}};
  const at::Tensor doubles = values.to(at::kDouble).contiguous();
  json["values"] = std::vector<double>(doubles.const_data_ptr<double>(), doubles.const_data_ptr<double>() + doubles.numel());
  return json;
}

// What the maps are, beside --out.
Json result_json(const ExplainCommand& flags, const Explainer& explainer, const ExplainedBatch& batch) {
  const at::Tensor targets = batch.targets.contiguous();
  return {{"model", flags.subject.model},
          {"explainer", explainer.name()},
          {"samples", batch.maps.size(0)},
          {"out", flags.out},
          {"targets", std::vector<std::int64_t>(targets.const_data_ptr<std::int64_t>(),
                                                targets.const_data_ptr<std::int64_t>() + targets.numel())},
          {"delta", summary(batch.delta)},
          {"gauge_share", summary(batch.gauge_share)}};
}

void log_result(const Json& result) {
  log_info("{} of {} in {}", counted(result["samples"].get<std::int64_t>(), "map"), result["explainer"].get<std::string>(),
           result["out"].get<std::string>());
  if (const Json& delta = result["delta"]; !delta.is_null()) {
    log_info("convergence delta (what is missing from the sum of a map): {:.3g} on average, at most {:.3g} (sample {})",
             delta["mean"].get<double>(), delta["largest"].get<double>(), delta["sample"].get<std::int64_t>());
  }
  if (const Json& share = result["gauge_share"]; !share.is_null()) {
    log_info(
        "gauge share (of the squared gradient, in the means of one-hot groups, taken out): {:.1f} % on average, at most {:.1f} %",
        100 * share["mean"].get<double>(), 100 * share["largest"].get<double>());
  }
}

// One picture a sample: the map over its input, with the names of the features for tables.
void write_pictures(const ExplainCommand& flags, const Samples& samples, const at::Tensor& maps) {
  make_folders(flags.png);
  const std::int64_t count = std::min(maps.size(0), flags.png_count);
  for (std::int64_t sample = 0; sample < count; ++sample) {
    write_map_png(fmt::format("{}/{:05}.png", flags.png, sample), to_raw(samples.inputs[sample]), to_raw(maps[sample]),
                  *samples.schema, {.top = flags.png_top});
  }
  log_info("{} in {}", counted(count, "picture"), flags.png);
}

void run(ExplainCommand& flags) {
  flags.common.apply(scratch_beside(flags.out));
  const NewFolders folders = prepare_output_file(flags.out, {".npy"});
  if (!flags.png.empty()) check_writable_folder(flags.png);
  const std::unique_ptr<Explainer> explainer = explainers().make(flags.explainer);
  const Subject subject = load_subject(flags.subject, flags.common.torch_device());
  const ExplainTask task{
      .model = *subject.model, .samples = subject.samples, .seed = static_cast<std::uint64_t>(flags.common.seed)};
  explainer->check_task(task);  // before the progress line
  ExplainedBatch batch;
  {
    Progress progress("explain", subject.samples.count(), "samples");
    batch = explain_all(*explainer, task, flags.common.tiles(), &progress);
  }
  const at::Tensor maps = scaled_maps(batch.maps, batch.log_scale);
  write_tensor(flags.out, shown_maps(maps, subject.samples.layout()));
  const Json result = result_json(flags, *explainer, batch);
  log_result(result);
  if (!flags.png.empty()) write_pictures(flags, subject.samples, maps);
  if (flags.json) std::fputs(dump_json(result).c_str(), stdout);
}

}  // namespace

void add_explain(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<ExplainCommand>();
  CLI::App* command = add_command(app, "explain", "Writes explanations: how much each input feature counts for the prediction",
                                  "holdfast explain --model mlp:examples/model.safetensors --inputs examples/inputs.npy "
                                  "--explainer saliency --out runs/maps.npy");
  flags->subject.add_to(*command, true);
  command->add_option("--explainer", flags->explainer, "Explainer; `holdfast list explainers`")->capture_default_str();
  command->add_option("--out", flags->out, "File for the maps, .npy of the inputs' shape; for token ids one value for each token")
      ->required();
  command->add_option("--png", flags->png, "Folder for pictures: heat maps of images, bar charts of tables");
  command->add_option("--png-count", flags->png_count, "How many samples to draw")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--png-top", flags->png_top, "Mark the K most important pixels; tables: draw K bars. 0: no marks, 24 bars")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print samples, explainer, delta and gauge share as JSON");
  flags->common.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
