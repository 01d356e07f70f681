#include "lent.h"

#include "holdfast/core/torch.h"
#include "holdfast/experiment/explain_all.h"
#include "work.h"

namespace holdfast::python {
namespace {

using Released = py::call_guard<py::gil_scoped_release>;

at::Tensor like_inputs(const at::Tensor& points, const Samples& samples) {
  return points.detach().to(samples.inputs.options());
}

}  // namespace

StudyView::StudyView(const Model& model, const Explainer& explainer, const Samples& samples, std::uint64_t seed)
    : model_(model), explainer_(explainer), samples_(samples), seed_(seed) {}

ExplainTask StudyView::at(const at::Tensor& points) const {
  return {.model = model_.get(), .samples = samples().moved_to(like_inputs(points, samples())), .seed = seed_};
}

at::Tensor StudyView::logits(const at::Tensor& points) const {
  return model_.get().logits(points.to(samples().inputs.options()));
}

at::Tensor StudyView::explain(const at::Tensor& points) {
  evaluations_ += explainer_.get().evaluations(*samples().schema);
  const Explanation found = explainer_.get().attribute(at(points));
  return scaled_maps(found.maps, found.log_scale);
}

at::Tensor StudyView::pullback(const at::Tensor& points, const at::Tensor& cotangent) {
  evaluations_ += 3 * explainer_.get().evaluations(*samples().schema);
  const std::unique_ptr<Linearization> here = explainer_.get().linearize(at(points));
  return here->pullback(cotangent.detach().to(here->at().maps.options()));
}

void StudyView::take_back() {
  model_.take_back();
  explainer_.take_back();
  samples_.take_back();
}

void AttackView::take_back() {
  StudyView::take_back();
  task.take_back();
}

void bind_lent(py::module_& module) {
  py::class_<ModelView, std::shared_ptr<ModelView>>(module, "ModelView")
      .def(
          "__call__", [](const ModelView& view, const at::Tensor& inputs) { return view.get().logits(inputs); },
          py::arg("inputs"), Released())
      .def_property_readonly("name", [](const ModelView& view) { return view.get().name(); });
  py::class_<StudyView, std::shared_ptr<StudyView>>(module, "StudyView")
      .def("logits", &StudyView::logits, py::arg("points"), Released())
      .def("explain", &StudyView::explain, py::arg("points"), Released())
      .def("pullback", &StudyView::pullback, py::arg("points"), py::arg("cotangent"), Released())
      .def_property_readonly("inputs", [](const StudyView& view) { return view.samples().inputs; })
      .def_property_readonly("targets", [](const StudyView& view) { return view.samples().targets; })
      .def_property_readonly("ids", [](const StudyView& view) { return view.samples().ids; })
      .def_property_readonly("seed", &StudyView::seed);
  py::class_<AttackView, StudyView, std::shared_ptr<AttackView>>(module, "AttackView")
      .def_property_readonly("norm", [](const AttackView& view) { return to_string(view.task.get().threat.norm); })
      .def_property_readonly("epsilon", [](const AttackView& view) { return view.task.get().threat.epsilon; })
      .def_property_readonly("k", [](const AttackView& view) { return view.task.get().metric.top_count(); })
      .def(
          "project",
          [](const AttackView& view, const at::Tensor& points) {
            const AttackTask& task = view.task.get();
            return task.threat.project(like_inputs(points, task.samples), task.samples.inputs);
          },
          py::arg("points"), Released());
  py::class_<MeasureView, StudyView, std::shared_ptr<MeasureView>>(module, "MeasureView")
      .def_readonly("epsilon", &MeasureView::epsilon);
  py::class_<TraineeView, std::shared_ptr<TraineeView>>(module, "TraineeView")
      .def(
          "__call__", [](const TraineeView& view, const at::Tensor& inputs) { return view.get().logits(inputs); },
          py::arg("inputs"), Released())
      .def(
          "training",
          [](const TraineeView& view, const at::Tensor& inputs) { return view.get().training_logits(inputs, view.seed); },
          py::arg("inputs"), Released())
      .def_readonly("progress", &TraineeView::progress);
}

}  // namespace holdfast::python
