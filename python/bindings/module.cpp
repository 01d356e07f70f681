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
      [](py::function function, at::Device device, at::ScalarType dtype, const std::string& name) {
        auto model = std::make_shared<PythonModel>(std::move(function), device, dtype);
        model->set_name(name);
        return std::shared_ptr<Model>(model);
      },
      py::arg("function"), py::arg("device"), py::arg("dtype"), py::arg("name"));
}

void bind_schema(py::module_& module) {
  py::class_<Schema>(module, "Schema")
      .def_static("from_json", [](const std::string& text,
                                  const std::string& where) { return schema_from_json(parse_json(text, where), where); })
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
  py::class_<AttackChoice>(module, "AttackChoice")
      .def(py::init([](std::string attack, std::string explainer, std::string metric, std::string norm, double epsilon,
                       std::optional<std::pair<double, double>> box, std::string select, bool trace) {
        return AttackChoice{
            std::move(attack), std::move(explainer), std::move(metric), std::move(norm), epsilon, box, std::move(select), trace};
      }));
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
      .def_readonly("first_swap", &Attacked::first_swap)
      .def_readonly("label_flips", &Attacked::label_flips)
      .def_readonly("evaluations", &Attacked::evaluations)
      .def_readonly("iteration", &Attacked::iteration)
      .def_readonly("trace", &Attacked::trace)
      .def_readonly("metric", &Attacked::metric)
      .def_readonly("attack", &Attacked::attack)
      .def_readonly("explainer", &Attacked::explainer)
      .def_readonly("summary", &Attacked::summary);
  module.def("attack", &attack, Unlocked());
}

void bind_measure(py::module_& module) {
  py::class_<Compared>(module, "Compared").def_readonly("summary", &Compared::summary).def_readonly("values", &Compared::values);
  module.def("measure", &measure, Unlocked());
}

void bind_question(py::module_& module) {
  py::class_<Question>(module, "Question")
      .def(py::init([](std::shared_ptr<Model> model, at::Tensor inputs, std::optional<at::Tensor> targets,
                       std::optional<at::Tensor> baseline, std::optional<at::Tensor> background, std::optional<Schema> schema,
                       std::uint64_t seed, int threads, std::int64_t tile) {
        return Question{std::move(model),
                        std::move(inputs),
                        std::move(targets),
                        std::move(baseline),
                        std::move(background),
                        std::move(schema),
                        seed,
                        threads,
                        tile};
      }));
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
