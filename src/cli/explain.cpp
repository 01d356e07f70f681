// holdfast explain: maps of what mattered to a model.
#include <cstdio>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/report/pictures.h"

namespace holdfast::cli {
namespace {

struct Flags {
  CommonFlags common;
  SubjectFlags subject;
  std::string explainer = "saliency", out, png;
  std::int64_t png_count = 32;
};

// One picture a sample: the map over its input, with the names of the features for tables.
void write_pictures(const Flags& flags, const Subject& subject, const at::Tensor& maps) {
  check_writable_folder(flags.png);
  make_folders(flags.png);
  const std::int64_t count = std::min(maps.size(0), flags.png_count);
  for (std::int64_t sample = 0; sample < count; ++sample) {
    write_map_png(fmt::format("{}/{:05}.png", flags.png, sample), to_raw(subject.inputs[sample]), to_raw(maps[sample]),
                  subject.schema);
  }
  log_info("{} pictures in {}", count, flags.png);
}

void run(const Flags& flags) {
  flags.common.apply();
  prepare_output_file(flags.out);
  const std::unique_ptr<Explainer> explainer = explainers().make(flags.explainer);
  const Subject subject = load_subject(flags.subject, flags.common.torch_device());
  ExplainedBatch batch;
  {
    Progress progress("explain", subject.inputs.size(0), "samples");
    batch = explain_all({.model = *subject.model,
                         .explainer = *explainer,
                         .schema = subject.schema,
                         .inputs = subject.inputs,
                         .targets = subject.targets,
                         .sample_ids = subject.ids,
                         .seed = static_cast<std::uint64_t>(flags.common.seed)},
                        flags.common.tiles(), &progress);
  }
  const at::Tensor maps = scaled_maps(batch.maps, batch.log_scale);
  write_tensor(flags.out, maps);
  log_info("{} maps of {} in {}", maps.size(0), explainer->name(), flags.out);
  if (!flags.png.empty()) write_pictures(flags, subject, maps);
}

}  // namespace

void add_explain(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(app, "explain", "Computes explanations",
                                  "holdfast explain --model mlp:examples/model.safetensors --inputs examples/inputs.npy "
                                  "--explainer saliency --out runs/maps.npy");
  flags->subject.add_to(*command, true);
  command->add_option("--explainer", flags->explainer, "Explainer; `holdfast list explainers`")->capture_default_str();
  command->add_option("--out", flags->out, "Maps, .npy of the inputs' shape")->required();
  command->add_option("--png", flags->png, "Folder for pictures: heat maps of images, bar charts of tables");
  command->add_option("--png-count", flags->png_count, "How many samples to draw")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  flags->common.add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
