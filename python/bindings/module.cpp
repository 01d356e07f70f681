// holdfast._core: what the Python package stands on. Arguments are checked and results dressed in python/holdfast.
#include "../../src/cli/catalogue.h"
#include "calls.h"
#include "errors.h"
#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"
#include "holdfast/data/schema.h"
#include "holdfast/model/model.h"
#include "holdfast/version.h"
#include "python_model.h"
#include "work.h"

namespace holdfast::python {
namespace {

using Unlocked = py::call_guard<Work>;

std::string catalogue_json() {
  Json listing = Json::object();
  for (const auto& [kind, infos] : cli::catalogue()) {
    listing[kind] = Json::array();
    for (const MethodInfo* info : infos) listing[kind].push_back(cli::to_json(*info));
  }
  return dump_json(listing);
}

at::Tensor run_native(const Model& model, const at::Tensor& inputs) {
  return model.logits(inputs.to(at::TensorOptions().device(model.device()).dtype(model.dtype())));
}

void bind_model(py::module_& module) {
  py::class_<Model, std::shared_ptr<Model>>(module, "Model")
      .def_property_readonly("name", &Model::name)
      .def_property_readonly("device", &Model::device)
      .def_property_readonly("dtype", &Model::dtype)
      .def_property_readonly("layers", [](const Model& model) { return model.network() != nullptr; })
      .def("describe", &Model::describe)
      .def("rename", &Model::set_name)
      .def("logits", &run_native, py::arg("inputs"), Unlocked());
  module.def(
      "load_model", [](const std::string& text, at::Device device) { return std::shared_ptr<Model>(load_model(text, device)); },
      py::arg("text"), py::arg("device"), Unlocked());
  module.def(
      "python_model",
      [](py::function function, at::Device device, at::ScalarType dtype, const std::string& name, bool known_apart) {
        auto model = std::make_shared<PythonModel>(std::move(function), device, dtype, known_apart);
        model->set_name(name);
        return std::shared_ptr<Model>(model);
      },
      py::arg("function"), py::arg("device"), py::arg("dtype"), py::arg("name"), py::arg("known_apart") = false);
}

void bind_schema(py::module_& module) {
  py::class_<Schema>(module, "Schema")
      .def(py::init([](const std::string& text, const std::string& where) {
             return schema_from_json(parse_json(text, where), where);
           }),
           py::arg("text"), py::arg("where"))
      .def("to_json", [](const Schema& schema) { return dump_json(to_json(schema)); })
      .def_property_readonly("layout", [](const Schema& schema) { return schema.layout.describe(); })
      .def("feature_name", &Schema::feature_name);
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
  py::class_<ThreatChoice>(module, "ThreatChoice")
      .def(py::init<>())
      .def_readwrite("norm", &ThreatChoice::norm)
      .def_readwrite("epsilon", &ThreatChoice::epsilon)
      .def_readwrite("box", &ThreatChoice::box)
      .def_readwrite("valid", &ThreatChoice::valid)
      .def_readwrite("sides", &ThreatChoice::sides)
      .def_readwrite("negative_weights", &ThreatChoice::negative_weights)
      .def_readwrite("tolerance", &ThreatChoice::tolerance);
  py::class_<AttackChoice>(module, "AttackChoice")
      .def(py::init<>())
      .def_readwrite("attack", &AttackChoice::attack)
      .def_readwrite("explainer", &AttackChoice::explainer)
      .def_readwrite("metric", &AttackChoice::metric)
      .def_readwrite("threat", &AttackChoice::threat)
      .def_readwrite("select", &AttackChoice::select)
      .def_readwrite("trace", &AttackChoice::trace);
  py::class_<Attacked>(module, "Attacked")
      .def_readonly("perturbed", &Attacked::perturbed)
      .def_readonly("original_maps", &Attacked::original_maps)
      .def_readonly("perturbed_maps", &Attacked::perturbed_maps)
      .def_readonly("logits", &Attacked::logits)
      .def_readonly("perturbed_logits", &Attacked::perturbed_logits)
      .def_readonly("targets", &Attacked::targets)
      .def_readonly("prediction", &Attacked::prediction)
      .def_readonly("prediction_after", &Attacked::prediction_after)
      .def_readonly("norm", &Attacked::norm)
      .def_readonly("value", &Attacked::value)
      .def_readonly("margin", &Attacked::margin)
      .def_readonly("clean_margin", &Attacked::clean_margin)
      .def_readonly("first_swap", &Attacked::first_swap)
      .def_readonly("label_flips", &Attacked::label_flips)
      .def_readonly("evaluations", &Attacked::evaluations)
      .def_readonly("iteration", &Attacked::iteration)
      .def_readonly("projections", &Attacked::projections)
      .def_readonly("non_finite", &Attacked::non_finite)
      .def_readonly("no_gradient", &Attacked::no_gradient)
      .def_readonly("late_gain", &Attacked::late_gain)
      .def_readonly("component", &Attacked::component)
      .def_readonly("trace", &Attacked::trace)
      .def_readonly("metric", &Attacked::metric)
      .def_readonly("attack", &Attacked::attack)
      .def_readonly("explainer", &Attacked::explainer)
      .def_readonly("select", &Attacked::select)
      .def_readonly("summary", &Attacked::summary)
      .def_readonly("components", &Attacked::components);
  module.def("attack", &attack, Unlocked());
}

void bind_measure(py::module_& module) {
  py::class_<Compared>(module, "Compared").def_readonly("summary", &Compared::summary).def_readonly("values", &Compared::values);
  module.def("measure", &measure, Unlocked());
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

void bind_question(py::module_& module) {
  py::class_<Question>(module, "Question")
      .def(py::init<>())
      .def_readwrite("model", &Question::model)
      .def_readwrite("inputs", &Question::inputs)
      .def_readwrite("targets", &Question::targets)
      .def_readwrite("baseline", &Question::baseline)
      .def_readwrite("background", &Question::background)
      .def_readwrite("schema", &Question::schema)
      .def_readwrite("seed", &Question::seed)
      .def_readwrite("threads", &Question::threads)
      .def_readwrite("tile", &Question::tile);
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
  module.def("catalogue", &catalogue_json);
}
