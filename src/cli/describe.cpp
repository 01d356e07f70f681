// holdfast describe: one method with its options, or what a model file is and can do.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "catalogue.h"
#include "command.h"
#include "common.h"
#include "holdfast/core/files.h"
#include "holdfast/core/sandbox.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/measure_all.h"
#include "holdfast/experiment/reproduce.h"
#include "holdfast/report/text_table.h"

namespace holdfast::cli {
namespace {

struct DescribeCommand {
  std::string name;
  bool json = false;
};

// A table, or below each option its meaning where one option's values alone fill the terminal.
std::string options_table(const std::vector<std::vector<std::string>>& rows, std::size_t width) {
  constexpr std::size_t kWidestRange = 30;
  const bool fits = width == 0 || std::ranges::all_of(rows, [&](const auto& row) { return row[2].size() <= kWidestRange; });
  if (fits) return listing({"option", "default", "range", "meaning"}, rows, width);
  std::string text;
  for (const std::vector<std::string>& row : rows)
    text += wrapped(fmt::format("{}={}", row[0], row[1]) + (row[2].empty() ? "" : "  (" + row[2] + ")"), width) +
            wrapped("  " + row[3], width);
  return text;
}

void print_method(const std::string& kind, const MethodInfo& info) {
  const std::size_t width = terminal_columns();
  std::printf("%s  (%s)\n%s", info.name.c_str(), kind.c_str(), wrapped("  " + info.summary, width).c_str());
  if (!info.citation.empty()) std::printf("\n%s", wrapped("Cite: " + info.citation, width).c_str());
  if (!info.notes.empty()) std::printf("\n%s", wrapped(info.notes, width).c_str());
  for (const std::string& need : info.needs) std::printf("%s", wrapped("Needs: " + need, width).c_str());
  if (!info.options.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const OptionSpec& spec : info.options)
      rows.push_back({spec.name, to_string(spec.value), to_string(spec.range), spec.help});
    std::printf("\n%s", options_table(rows, width).c_str());
  }
  for (const Preset& preset : info.presets) {
    std::string values;
    for (const auto& [name, value] : preset.values) values += (values.empty() ? "" : ",") + name + "=" + to_string(value);
    std::printf("\npreset=%s  %s\n  %s\n", preset.name.c_str(), preset.help.c_str(), values.c_str());
  }
  std::printf("\n");
}

// A sample of zeros, [1, ...], where the model knows the shape of one and takes it: a file of several inputs takes none.
std::optional<at::Tensor> sample_of_zeros(const Model& model) {
  const std::optional<Layout> layout = model.layout();
  if (!layout) return std::nullopt;
  std::vector<std::int64_t> shape = layout->sample_shape();
  shape.insert(shape.begin(), 1);
  const at::Tensor sample = at::zeros(shape);
  try {
    const at::NoGradGuard no_grad;
    (void)model.logits(sample);
  } catch (const Error&) {  // the answer
    return std::nullopt;
  }
  return sample;
}

// The model as others take it where nothing else is said: one number is a logit.
std::shared_ptr<const Model> as_logits(const std::shared_ptr<const Model>& model, const at::Tensor& sample) {
  const at::NoGradGuard no_grad;
  try {
    const bool one = model->logits(sample).size(1) == 1;
    return with_logits(model, one ? OutputKind::kLogit : OutputKind::kLogits, sample);
  } catch (const Error&) {  // its description says what is wrong
    return model;
  }
}

// The explainers and measures that refuse the model with their default options, each with its reason. Measures are asked about
// a sample of zeros, where there is one.
Json refusals(const Model& model, const std::optional<at::Tensor>& sample) {
  Json refused = Json::array();
  const auto ask = [&](const char* kind, const MethodInfo& info, const std::function<void()>& check) {
    try {
      check();
    } catch (const Error& error) {  // the answer
      refused.push_back({{"kind", kind}, {"name", info.name}, {"why", error.what()}});
    }
  };
  for (const MethodInfo* info : explainers().infos()) {
    ask("explainers", *info, [&] { explainers().make(info->name)->check(model); });
  }
  if (!sample) return refused;
  const std::unique_ptr<Explainer> explainer = explainers().make("saliency");
  const MeasureTask task{.model = model,
                         .explainer = *explainer,
                         .samples = {.inputs = *sample,
                                     .ids = at::zeros({1}, at::kLong),
                                     .schema = share_schema(Schema::of(*model.layout())),
                                     .background = *sample},
                         .epsilon = 1};
  for (const MethodInfo* info : measures().infos()) {
    ask("measures", *info, [&] { check_measure(*measures().make(info->name), task); });
  }
  return refused;
}

void print_refusals(bool with_measures, const Json& refused) {
  const char* whom = with_measures ? "explainers and measures" : "explainers";
  std::printf(refused.empty() ? "All %s take it.\n" : "Of the %s, with their default options, these refuse it:\n", whom);
  for (const Json& entry : refused) std::printf("  %s\n", entry.at("why").get<std::string>().c_str());  // it says whose it is
  if (!with_measures) std::printf("Measures are asked when the samples are there.\n");
}

void run_model(const DescribeCommand& flags) {
  const std::shared_ptr<const Model> model = load_model(flags.name);
  const std::optional<at::Tensor> sample = sample_of_zeros(*model);
  const Json refused = refusals(sample ? *as_logits(model, *sample) : *model, sample);
  if (!flags.json) {
    std::printf("%s\n", model->describe().c_str());
    print_refusals(sample.has_value(), refused);
    if (!current_sandbox().files) std::printf("It ran without a sandbox of files (docs/trust.md).\n");
    return;
  }
  const Capabilities can = model->capabilities();
  const Json json{{"model", model->name()},
                  {"kind", model->network() != nullptr ? "network" : "opaque"},
                  {"description", model->describe()},
                  {"parameters", model->parameter_count() ? Json(*model->parameter_count()) : Json()},
                  {"capabilities",
                   {{"gradients", can.gradients},
                    {"double_backward", can.double_backward},
                    {"layers", can.layers},
                    {"side_by_side", can.side_by_side},
                    {"float64", can.float64}}},
                  {"refused", refused}};
  std::fputs(dump_json(json).c_str(), stdout);
}

// Experiments have a slash in their name too, but their group is known.
bool looks_like_path(const std::string& name) {
  if (name.find_first_of("/.") == std::string::npos || name.find('(') != std::string::npos) return false;
  const std::string group = name.substr(0, name.find('/') + 1);
  if (group.empty()) return true;
  const auto infos = experiments().infos();
  return std::none_of(infos.begin(), infos.end(), [&](const MethodInfo* info) { return info->name.starts_with(group); });
}

// A call is held to what the method would say of it. A name that several kinds have must suit one of them.
void check_call(const MethodCall& call, const std::vector<const MethodInfo*>& infos) {
  std::optional<Error> refused;
  for (const MethodInfo* info : infos) {
    try {
      const Options checked(*info, call);
      return;
    } catch (const Error& error) {
      if (!refused) refused = error;
    }
  }
  if (refused) throw *refused;
}

void run(const DescribeCommand& flags) {
  if (flags.name.find(':') != std::string::npos || file_exists(flags.name)) {
    CommonFlags().apply();  // its limit of memory: a small file can name a large architecture
    return run_model(flags);
  }
  if (looks_like_path(flags.name)) input_error("{}: there is no such file", flags.name);
  const MethodCall call = parse_method_call(flags.name);
  const std::string& wanted = call.name;
  std::vector<std::string> known, kinds;
  std::vector<const MethodInfo*> found;
  for (const auto& [kind, infos] : catalogue()) {
    for (const MethodInfo* info : infos) {
      known.push_back(info->name);
      if (info->name != wanted) continue;
      kinds.push_back(kind);
      found.push_back(info);
    }
  }
  if (found.empty())
    usage_error("nothing is called '{}'{}; `holdfast list` shows all names, and a model file is described by its path", wanted,
                did_you_mean(wanted, known));
  check_call(call, found);
  Json entries = Json::array();
  for (std::size_t i = 0; i < found.size(); ++i) {
    entries.push_back({{"kind", kinds[i]}});
    entries.back().update(to_json(*found[i]));
    if (!flags.json) print_method(kinds[i], *found[i]);
  }
  if (flags.json) std::fputs(dump_json(entries.size() == 1 ? entries[0] : entries).c_str(), stdout);
}

}  // namespace

void add_describe(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<DescribeCommand>();
  CLI::App* command = add_command(app, "describe", "Explains a method and its options, or a model file", "holdfast describe er");
  command->add_option("NAME", flags->name, "A method, a model file (.pt2, TorchScript, ONNX) or ARCHITECTURE:weights.safetensors")
      ->required();
  command->add_flag("--json", flags->json, "As JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace holdfast::cli
