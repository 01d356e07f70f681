// holdfast measure: how alike two sets of maps are.
#include <cstdio>
#include <memory>

#include "command.h"
#include "common.h"
#include "holdfast/core/log.h"
#include "holdfast/core/tensor.h"
#include "holdfast/core/torch.h"
#include "holdfast/metric/levels.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct Flags {
  std::string original, perturbed, schema;
  std::vector<std::string> metrics;
  std::uint64_t seed = 0;
  bool json = false;
  bool quiet = false;
};

void check_same_shape(const Flags& flags, const at::Tensor& original, const at::Tensor& perturbed) {
  if (original.sizes() == perturbed.sizes()) return;
  input_error("{} has shape {}, but {} has shape {}", flags.original, to_string(original.sizes().vec()), flags.perturbed,
              to_string(perturbed.sizes().vec()));
}

Schema schema_for(const Flags& flags, const at::Tensor& maps) {
  const std::vector<std::int64_t> shape = maps.sizes().slice(1).vec();
  if (flags.schema.empty()) return Schema::of(Layout::guess(shape));
  const Schema schema = read_schema(flags.schema);
  if (schema.layout.sample_shape() != shape) {
    input_error("{}: maps have shape {}, but the schema {} describes {}", flags.original, to_string(shape), flags.schema,
                to_string(schema.layout.sample_shape()));
  }
  return schema;
}

std::string cell(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "-";
}

void run(const Flags& flags) {
  if (flags.quiet) set_log_level(LogLevel::kWarning);
  std::vector<std::unique_ptr<Metric>> chosen;
  for (const std::string& text : flags.metrics) chosen.push_back(metrics().make(text));
  const at::Tensor original = read_inputs(flags.original, {.keep_double = true});
  const at::Tensor perturbed = read_inputs(flags.perturbed, {.keep_double = true});
  if (original.dim() < 2)
    input_error("{}: has shape {}; maps [B, ...] are expected", flags.original, to_string(original.sizes().vec()));
  check_same_shape(flags, original, perturbed);
  const Schema schema = schema_for(flags, original);
  const MapBatch clean = fold_maps(original, schema);
  const MapBatch moved = fold_maps(perturbed, schema);

  Json results = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const std::unique_ptr<Metric>& metric : chosen) {
    metric->check(schema);
    const Baseline level = baseline(*metric, clean, {}, {.seed = flags.seed});
    const Assessment result = assess(*metric, clean, moved, level, flags.seed);
    results.push_back(to_json(result));
    rows.push_back({result.metric, fmt::format("{:.4f}", result.value.mean),
                    result.value.count < 2 ? "-" : fmt::format("[{:.4f}, {:.4f}]", result.value.low, result.value.high),
                    cell(result.chance), cell(result.adjusted), cell(result.between), cell(result.specific)});
    warn_of_ties(result);
  }
  if (flags.json) {
    std::fputs(dump_json({{"samples", clean.count}, {"metrics", results}}).c_str(), stdout);
  } else {
    std::printf("%lld samples\n%s", static_cast<long long>(clean.count),
                text_table({"metric", "mean", "95 %", "chance", "adjusted", "between", "specific"}, rows).c_str());
  }
}

}  // namespace

void add_measure(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = add_command(
      app, "measure", "Compares two sets of maps, with the levels that make a similarity mean something",
      "holdfast measure examples/original_attributions.npy examples/perturbed_attributions.npy --metric 'top_k(k=4)'");
  command->add_option("ORIGINAL", flags->original, "Maps, .npy [B, ...]")->required();
  command->add_option("PERTURBED", flags->perturbed, "Maps of the same shape")->required();
  command->add_option("--metric", flags->metrics, "Metric; may be repeated")->required()->allow_extra_args(false);
  command->add_option("--schema", flags->schema, "JSON: layout and one-hot groups of the maps");
  command->add_option("--seed", flags->seed, "Seed of the intervals and of the pairs of samples")->capture_default_str();
  command->add_flag("--json", flags->json, "As JSON, with a value for each sample");
  command->add_flag("--quiet", flags->quiet, "Only errors");
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
