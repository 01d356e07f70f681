#include <c10/core/ScalarType.h>
#include <fmt/ranges.h>

#include "calls.h"
#include "holdfast/core/error.h"
#include "holdfast/core/files.h"
#include "holdfast/core/memory.h"
#include "holdfast/core/torch.h"
#include "holdfast/experiment/audit.h"
#include "holdfast/experiment/audit_config.h"
#include "holdfast/experiment/run_folder.h"
#include "holdfast/experiment/suggest.h"
#include "holdfast/report/html.h"
#include "python_model.h"

namespace holdfast::python {
namespace {

std::string digest_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "";
  const at::Tensor plain = tensor.detach().cpu().contiguous();
  const auto* begin = static_cast<const std::byte*>(plain.const_data_ptr());
  return fmt::format("{} {} {}", c10::toString(plain.scalar_type()), fmt::join(plain.sizes(), "x"),
                     sha256_hex({begin, static_cast<std::size_t>(plain.nbytes())}));
}

// Python's functions have none, and copies of modules have no more one.
bool has_file(const Model& model) {
  const std::string file = model_file(model.name());
  return !file.empty() && file_exists(file);
}

// What makes this run this run. What a Python function computes cannot be read anywhere: its logits at the samples stand for it.
Json identity_of(const std::vector<NamedModel>& models, const AuditData& data, const AuditChoice& choice,
                 const Question& question) {
  Json known = Json::array();
  std::vector<std::string> files;
  for (const NamedModel& one : models) {
    known.push_back({{"name", one.name}, {"content", one.content}});
    if (has_file(*one.model))
      files.push_back(model_file(one.model->name()));
    else
      known.back()["logits"] = digest_of(predict(*one.model, data.samples.inputs, data.samples.layout(), question.tiles));
  }
  const Samples& samples = data.samples;
  Json config{{"title", choice.title}, {"models", known}};
  config.update(to_json(choice.trial));
  config.update({{"seed", question.seed}, {"worst", choice.worst}, {"methods", parse_json(choice.methods, "methods")}});
  Json identity{{"config", config},
                {"data",
                 {{"name", data.name},
                  {"inputs", digest_of(samples.inputs)},
                  {"targets", digest_of(samples.targets)},
                  {"labels", digest_of(samples.labels)},
                  {"baseline", digest_of(samples.baseline)},
                  {"background", digest_of(samples.background)},
                  {"schema", to_json(*samples.schema)}}}};
  identity.update(run_conditions(question.tiles.size, models.front().model->device(), files));
  return identity;
}

// The samples as every model takes them, and each model asked once before any work.
AuditData examined(const Question& question, std::vector<NamedModel>& models, const AuditChoice& choice) {
  AuditData data{.name = choice.dataset, .samples = question.samples, .trial = choice.trial};
  const at::Tensor inputs = data.samples.inputs;
  if (inputs.dim() > 0) data.samples.ids = at::arange(inputs.size(0), at::kLong);
  if (choice.labels.defined()) data.samples.labels = checked_labels(choice.labels, inputs.size(0), 0, "labels");
  if (inputs.dim() >= 2 && inputs.is_floating_point()) exclude_non_finite(data);
  for (NamedModel& one : models) {
    Question own = question;
    own.model = std::const_pointer_cast<Model>(one.model);
    own.samples = data.samples;
    const Subject found = examine_twice(own);
    one.model = found.model;
    if (one.model->output_kind() == OutputKind::kValue && choice.labels.defined())
      usage_error("labels: they are classes, and {} gives a value", one.name);
    const at::Tensor ids = data.samples.ids;
    data.samples = found.samples;
    data.samples.ids = ids;  // the rows of what was given
  }
  check_samples(data.name, data.samples, data.trial);
  return data;
}

// Large arrays lie in the run's folder while it is written, as they do in the command line.
class Scratch {
 public:
  explicit Scratch(const std::string& folder) { set_scratch_folder(folder); }
  ~Scratch() { set_scratch_folder(""); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

}  // namespace

void audit(const Question& question, std::vector<NamedModel> models, const AuditChoice& choice) {
  if (models.empty()) usage_error("models: there is none");
  check_calls(choice.trial);
  AuditRequest request{.gates = parse_gates(choice.gates), .command = {choice.call}};
  check_gates_answered(request.gates, {choice.trial});
  AuditData data = examined(question, models, choice);
  Question sized = question;
  sized.model = std::const_pointer_cast<Model>(models.front().model);
  sized.tiles = tiles_of(sized, data.samples.layout());
  request.identity = identity_of(models, data, choice, sized);
  request.prepare = [&] {
    AuditPlan plan{.title = choice.title, .seed = question.seed, .tiles = sized.tiles, .worst = choice.worst};
    plan.data.push_back(data);
    for (const NamedModel& one : models) {
      Json facts = model_facts(one.model->name(), *one.model);
      if (!has_file(*one.model)) facts["in_python"] = true;
      plan.models.push_back({.name = one.name, .data = 0, .model = one.model, .facts = facts});
    }
    return plan;
  };
  const FolderClaim claim = claim_run_folder(choice.out, request.identity, choice.restart);
  const Scratch scratch(choice.out);
  Json results;
  with_advice(sized, [&] { results = complete_audit(request, choice.out); });
  write_audit_pages(results, choice.out);
}

void audit_config(const std::string& path, const AuditChoice& choice, const std::vector<std::string>& overrides,
                  const TileOptions& tiles, at::Device device) {
  AuditConfig config = read_audit_config(Config::load(path, overrides));
  add_gates(config, choice.gates, /*compared=*/false);
  AuditRequest request = request_of(config, choice.out, tiles, device);
  request.command = {choice.call};
  if (const Json methods = parse_json(choice.methods, "methods"); !methods.empty()) request.identity["methods"] = methods;
  const FolderClaim claim = claim_run_folder(choice.out, request.identity, choice.restart);
  const Scratch scratch(choice.out);
  const Json results = complete_audit(request, choice.out);
  write_audit_pages(results, choice.out);
}

Json choose_threat(const Question& question, const std::string& explainer, const std::optional<std::string>& norm,
                   const std::optional<double>& noise, const std::optional<double>& tolerance) {
  const Subject subject = examine_twice(question);
  SuggestOptions options{.explainer = explainer, .noise = noise, .tolerance = tolerance, .seed = question.seed};
  options.tiles = tiles_of(question, subject.samples.layout());
  if (norm) options.norm = parse_norm(*norm);
  Json found;
  with_advice(question, [&] { found = to_json(suggest_threat(subject, options)); });
  return found;
}

void check_run(const std::string& folder) {
  if (!file_exists(folder + "/results.json") || !run_is_unchanged(folder))
    input_error("{} holds no complete run: results.json or manifest.json is missing", folder);
}

}  // namespace holdfast::python
