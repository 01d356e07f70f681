// holdfast._core: what the Python package stands on. Arguments are checked and results dressed in python/holdfast.
#include <mutex>
#include <utility>

#include "../../src/cli/catalogue.h"
#include "apart.h"
#include "call_train.h"
#include "calls.h"
#include "errors.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/listener.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/schema.h"
#include "holdfast/experiment/compare_runs.h"
#include "holdfast/model/model.h"
#include "holdfast/model/packing.h"
#include "holdfast/report/html.h"
#include "holdfast/report/text_table.h"
#include "holdfast/version.h"
#include "json_caster.h"
#include "own_method.h"
#include "python_model.h"
#include "work.h"

namespace holdfast::python {
namespace {

using Unlocked = py::call_guard<Work>;

Json catalogue_json() {
  Json listing = Json::object();
  for (const auto& [kind, infos] : cli::catalogue()) {
    listing[kind] = Json::array();
    for (const MethodInfo* info : infos) listing[kind].push_back(cli::to_json(*info));
  }
  return listing;
}

at::Tensor run_native(const std::shared_ptr<Model>& given, const at::Tensor& inputs) {
  const bool gives_logits = dynamic_cast<PythonModel*>(given.get()) != nullptr;  // whatever its function gives
  const std::shared_ptr<const Model> settled = gives_logits ? given : with_logits(given, OutputKind::kAuto, inputs);
  const Model& model = *settled;
  return model.logits(inputs.to(at::TensorOptions().device(model.device()).dtype(model.dtype())));
}

// Name, tensor and whether it is trained; the tensors are the model's own.
std::vector<std::tuple<std::string, at::Tensor, bool>> parameters_of(const Model& model) {
  std::vector<std::tuple<std::string, at::Tensor, bool>> all;
  if (model.network() == nullptr) return all;
  for (const Parameter& parameter : model.network()->parameters())
    all.emplace_back(parameter.name, parameter.tensor, parameter.trainable);
  return all;
}

ModelOptions reading_of(const std::string& output_kind, const std::string& output_name) {
  return {.output_kind = parse_output_kind(output_kind), .output_name = output_name};
}

// A file that was read for inputs of these kinds, which are packed for its model.
struct PackedFile {
  std::shared_ptr<Model> model;
  InputPacking packing;
  GivenInputs given;
  std::string schema;              // JSON, of the packed samples
  std::vector<std::string> names;  // of the inputs, in the file's order

  at::Tensor pack(const std::vector<at::Tensor>& values) const {
    std::vector<at::Tensor> plain;
    for (const at::Tensor& value : values) plain.push_back(value.detach());
    return packing.pack(packing.in_order(given, plain));
  }
};

// Each input: its name, its elements, a sample's shape and whether it is fixed. Null where the file takes one array as it is.
using InputKind = std::tuple<std::string, at::ScalarType, std::vector<std::int64_t>, bool>;
std::shared_ptr<PackedFile> load_packed(const std::string& text, at::Device device, const std::string& output_kind,
                                        const std::string& output_name, const std::string& embedding,
                                        const std::vector<InputKind>& inputs, const std::string& schema,
                                        const std::vector<std::int64_t>& special_tokens) {
  GivenInputs given{.special_tokens = special_tokens};
  Json known = schema.empty() ? Json::object() : parse_json(schema, "schema");
  if (known.contains("layout")) given.layout = schema_from_json({{"layout", known.at("layout")}}, "schema").layout;
  for (const auto& [name, type, shape, fixed] : inputs)
    given.inputs.push_back({.name = name, .type = type, .shape = shape, .fixed = fixed});
  ModelOptions reading = reading_of(output_kind, output_name);
  reading.embedding = embedding;
  PackedModel loaded = load_packed_model(text, device, reading, given);
  if (!loaded.packing) return nullptr;
  known["layout"] = to_json(Schema::of(loaded.packing->layout())).at("layout");
  std::vector<std::string> names;
  for (const GivenInput& input : loaded.packing->inputs()) names.push_back(input.name);
  return std::make_shared<PackedFile>(
      PackedFile{std::move(loaded.model), std::move(*loaded.packing), std::move(given), dump_json(known), std::move(names)});
}

void bind_model(py::module_& module) {
  py::class_<Model, std::shared_ptr<Model>>(module, "Model")
      .def_property_readonly("name", &Model::name)
      .def_property_readonly("device", &Model::device)
      .def_property_readonly("dtype", &Model::dtype)
      .def_property_readonly("output_kind", [](const Model& model) { return output_kind_name(model.output_kind()); })
      .def_property_readonly("known_apart", [](const Model& model) { return model.capabilities().known_apart; })
      .def_property_readonly("layers", [](const Model& model) { return model.network() != nullptr; })
      .def("describe", &Model::describe)
      .def("parameters", &parameters_of)
      .def(
          "look_at",
          [](Model& model, const at::Tensor& inputs) {
            if (auto* function = dynamic_cast<PythonModel*>(&model)) function->look_at(inputs);
          },
          py::arg("inputs"), Unlocked())
      .def("rename", &Model::set_name)
      .def("logits", &run_native, py::arg("inputs"), Unlocked());
  module.def(
      "load_model",
      [](const std::string& text, at::Device device, const std::string& output_kind, const std::string& output_name) {
        return std::shared_ptr<Model>(load_model(text, device, reading_of(output_kind, output_name)));
      },
      py::arg("text"), py::arg("device"), py::arg("output_kind") = "auto", py::arg("output_name") = "", Unlocked());
  py::class_<PackedFile, std::shared_ptr<PackedFile>>(module, "PackedFile")
      .def_readonly("model", &PackedFile::model)
      .def_readonly("schema", &PackedFile::schema)
      .def_readonly("names", &PackedFile::names)
      .def("pack", &PackedFile::pack, py::arg("values"), Unlocked());
  module.def("load_packed_model", &load_packed, Unlocked());
  module.def("known_apart", &known_apart);
  module.def("chosen_output", &chosen_output);
  module.def(
      "python_model",
      [](py::function function, at::Device device, at::ScalarType dtype, const std::string& name, bool known_apart,
         bool recurrent, const std::string& output_kind, const std::string& output_name) {
        auto model = std::make_shared<PythonModel>(std::move(function), device, dtype, known_apart, recurrent,
                                                   reading_of(output_kind, output_name));
        model->set_name(name);
        return std::shared_ptr<Model>(model);
      },
      py::arg("function"), py::arg("device"), py::arg("dtype"), py::arg("name"), py::arg("known_apart") = false,
      py::arg("recurrent") = false, py::arg("output_kind") = "auto", py::arg("output_name") = "");
}

void bind_schema(py::module_& module) {
  py::class_<Schema, std::shared_ptr<Schema>>(module, "Schema")
      .def(py::init([](const std::string& text, const std::string& where) {
             return schema_from_json(parse_json(text, where), where);
           }),
           py::arg("text"), py::arg("where"))
      .def("to_dict", [](const Schema& schema) { return to_json(schema); })
      .def_property_readonly("layout", [](const Schema& schema) { return schema.layout.describe(); })
      .def("feature_name", &Schema::feature_name)
      .def("map_names", [](const Schema& schema, std::int64_t length) {
        std::vector<std::string> names;
        for (std::int64_t i = 0; i < length; ++i) names.push_back(schema.of_maps(length).feature_name(i));
        return names;
      });
}

void bind_explain(py::module_& module) {
  py::class_<ExplainedBatch>(module, "ExplainedBatch")
      .def_readonly("maps", &ExplainedBatch::maps)
      .def_readonly("log_scale", &ExplainedBatch::log_scale)
      .def_readonly("logits", &ExplainedBatch::logits)
      .def_readonly("targets", &ExplainedBatch::targets)
      .def_readonly("delta", &ExplainedBatch::delta)
      .def_readonly("gauge_share", &ExplainedBatch::gauge_share);
  module.def("explain", &explain, Unlocked());
}

void bind_attack(py::module_& module) {
  py::class_<Threat> threat(module, "Threat");
  threat.def(py::init<>());
  for_each_option([&]<class Value>(const char* name, Value Threat::*member, const char* help) {
    if constexpr (std::is_enum_v<Value>) {
      threat.def_property(
          name, [member](const Threat& own) { return to_string(own.*member); },
          [name](Threat& own, const std::string& text) { set_option(own, name, text, name); }, help);
    } else {
      threat.def_readwrite(name, member, help);
    }
  });
  py::class_<Trial>(module, "Trial")
      .def(py::init<>())
      .def_readwrite("explainers", &Trial::explainers)
      .def_readwrite("attacks", &Trial::attacks)
      .def_readwrite("metrics", &Trial::metrics)
      .def_readwrite("measures", &Trial::measures)
      .def_readwrite("threat", &Trial::threat)
      .def_property(
          "select", [](const Trial& trial) { return to_string(trial.select); },
          [](Trial& trial, const std::string& text) { trial.select = parse_select(text); })
      .def_property(
          "precision", [](const Trial& trial) { return to_string(trial.precision); },
          [](Trial& trial, const std::string& text) { trial.precision = parse_precision(text); });
  py::class_<Attacked>(module, "Attacked")
      .def_readonly("perturbed", &Attacked::perturbed)
      .def_readonly("original_maps", &Attacked::original_maps)
      .def_readonly("perturbed_maps", &Attacked::perturbed_maps)
      .def_readonly("logits", &Attacked::logits)
      .def_readonly("perturbed_logits", &Attacked::perturbed_logits)
      .def_readonly("columns", &Attacked::columns)
      .def_readonly("component", &Attacked::component)
      .def_readonly("trace", &Attacked::trace)
      .def_readonly("metric", &Attacked::metric)
      .def_readonly("attack", &Attacked::attack)
      .def_readonly("explainer", &Attacked::explainer)
      .def_readonly("select", &Attacked::select)
      .def_readonly("summary", &Attacked::summary)
      .def_readonly("random", &Attacked::random)
      .def_readonly("components", &Attacked::components);
  module.def("attack", &attack, Unlocked());
  module.def("certify", &certify, Unlocked());
}

void bind_measure(py::module_& module) {
  py::class_<Compared>(module, "Compared").def_readonly("summary", &Compared::summary).def_readonly("values", &Compared::values);
  module.def(
      "measure",
      [](const at::Tensor& original, const at::Tensor& perturbed, const std::vector<std::string>& metrics,
         std::shared_ptr<Schema> schema, const std::optional<at::Tensor>& labels, std::uint64_t seed,
         bool levels) { return measure(original, perturbed, metrics, schema, labels, seed, levels); },
      Unlocked());
  py::class_<MeasureChoice>(module, "MeasureChoice")
      .def(py::init<>())
      .def_readwrite("measures", &MeasureChoice::measures)
      .def_readwrite("explainer", &MeasureChoice::explainer)
      .def_readwrite("epsilon", &MeasureChoice::epsilon)
      .def_readwrite("endpoints", &MeasureChoice::endpoints);
  py::class_<Measured>(module, "Measured")
      .def_readonly("summary", &Measured::summary)
      .def_readonly("values", &Measured::values)
      .def_readonly("parts", &Measured::parts);
  module.def("measure_model", &measure_model, Unlocked());
}

void bind_audit(py::module_& module) {
  py::class_<AuditChoice>(module, "AuditChoice")
      .def(py::init<>())
      .def_readwrite("trial", &AuditChoice::trial)
      .def_readwrite("title", &AuditChoice::title)
      .def_readwrite("dataset", &AuditChoice::dataset)
      .def_readwrite("out", &AuditChoice::out)
      .def_readwrite("gates", &AuditChoice::gates)
      .def_readwrite("labels", &AuditChoice::labels)
      .def_readwrite("worst", &AuditChoice::worst)
      .def_readwrite("restart", &AuditChoice::restart)
      .def_readwrite("call", &AuditChoice::call)
      .def_readwrite("methods", &AuditChoice::methods);
  py::class_<NamedModel>(module, "NamedModel")
      .def(py::init([](std::string name, std::shared_ptr<Model> model, std::string content) {
             return NamedModel{std::move(name), std::move(model), std::move(content)};
           }),
           py::arg("name"), py::arg("model"), py::arg("content"));
  module.def("audit", &audit, Unlocked());
  module.def(
      "audit_config",
      [](const std::string& path, const AuditChoice& choice, const std::vector<std::string>& overrides, std::int64_t tile,
         int threads,
         at::Device device) { return audit_config(path, choice, overrides, {.size = tile, .threads = threads}, device); },
      Unlocked());
  module.def("choose_threat", &choose_threat, Unlocked());
  module.def("check_run", &check_run, Unlocked());
  module.def(
      "write_report", [](const std::vector<std::string>& runs, const std::string& path) { write_report(runs, path); },
      Unlocked());
  module.def("results_table", [](const std::string& results) { return results_table(parse_json(results, "results")); });
  module.def("row_warnings", [](const std::string& results) { return row_warnings(parse_json(results, "results")); });
  module.def(
      "compare_runs", [](const std::vector<std::string>& folders, std::uint64_t seed) { return compare_runs(folders, seed); },
      Unlocked());
}

// Warnings are kept until somebody asks; progress goes to a Python function.
class PythonListener final : public Listener {
 public:
  void warned(const std::string& message) override {
    const std::lock_guard lock(mutex_);
    warnings_.push_back(message);
  }
  void advanced(const ProgressReport& report) override {
    const py::gil_scoped_acquire locked;
    if (!show_ || show_.is_none()) return;
    try {
      show_(report.what, report.done, report.total, report.seconds_left, report.note, report.finished);
    } catch (py::error_already_set& error) {  // what is shown must not stop the work; Ctrl-C must
      if (error.matches(PyExc_KeyboardInterrupt))
        request_interrupt();
      else
        error.discard_as_unraisable("holdfast: progress");
    }
  }

  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }
  void show_with(py::object show) { show_ = std::move(show); }  // with the interpreter lock

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  py::object show_;
};

void bind_listener(py::module_& module) {
  // Never let go: it holds a Python object, and work may be under way when the interpreter ends.
  static auto* const hearing = new std::shared_ptr<PythonListener>(std::make_shared<PythonListener>());
  set_listener(*hearing);
  module.def("take_warnings", [] { return (*hearing)->taken(); });
  module.def(
      "show_progress_with", [](py::object show) { (*hearing)->show_with(std::move(show)); }, py::arg("show"));
}

void bind_question(py::module_& module) {
  py::class_<Samples>(module, "Samples")
      .def_readwrite("inputs", &Samples::inputs)
      .def_readwrite("targets", &Samples::targets)
      .def_readwrite("baseline", &Samples::baseline)
      .def_readwrite("background", &Samples::background)
      .def_property(
          "schema", [](const Samples& samples) { return std::const_pointer_cast<Schema>(samples.schema); },
          [](Samples& samples, std::shared_ptr<Schema> schema) { samples.schema = std::move(schema); });
  py::class_<TileOptions>(module, "TileOptions")
      .def_readwrite("size", &TileOptions::size)
      .def_readwrite("threads", &TileOptions::threads);
  py::class_<Question>(module, "Question")
      .def(py::init<>())
      .def_readwrite("model", &Question::model)
      .def_readwrite("samples", &Question::samples)
      .def_readwrite("seed", &Question::seed)
      .def_readwrite("tiles", &Question::tiles);
}

}  // namespace
}  // namespace holdfast::python

PYBIND11_MODULE(_core, module) {
  using namespace holdfast::python;
  module.attr("version") = holdfast::kVersion;
  holdfast::set_log_level(std::max(holdfast::log_level(), holdfast::LogLevel::kWarning));
  bind_errors(module);
  bind_model(module);
  bind_schema(module);
  bind_question(module);
  bind_explain(module);
  bind_attack(module);
  bind_measure(module);
  bind_audit(module);
  bind_listener(module);
  bind_own_methods(module);
  bind_train(module);
  module.def("catalogue", &catalogue_json);
}
