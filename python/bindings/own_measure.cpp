// Measures of Python: a view of the model, explainer and samples in, one value for each sample out, with named columns beside it.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "holdfast/measure/measure.h"
#include "lent.h"
#include "own_method.h"

namespace holdfast::python {
namespace own_measure {

class OwnMeasure final : public Measure {
 public:
  OwnMeasure(const OwnMethod& method, const Options& options)
      : Measure(options.canonical()),
        function_(method.function),
        higher_is_better_(method.facts.at("higher_is_better").get<bool>()),
        uses_explainer_(method.facts.at("uses_explainer").get<bool>()) {
    const PythonTurn turn;
    keywords_ = share(keywords_of(method.info, options));
  }

  Measurement run(const MeasureTask& task) const override {
    const PythonTurn turn;
    const Lending<MeasureView> lent(std::make_shared<MeasureView>(task));
    const py::object result = (*function_)(py::cast(lent.view()), **py::dict(*keywords_));
    auto [values, parts] =
        py::cast<std::pair<std::vector<double>, std::vector<std::pair<std::string, std::vector<double>>>>>(result);
    return {.values = std::move(values), .parts = std::move(parts)};
  }

  void check(const MeasureTask& task) const override {
    if (uses_explainer_) task.explainer.check_task(task.explain_task());
  }
  bool higher_is_better() const override { return higher_is_better_; }
  bool uses_explainer() const override { return uses_explainer_; }

 private:
  SharedObject function_, keywords_;
  bool higher_is_better_, uses_explainer_;
};

}  // namespace own_measure

void extend_measures(OwnMethod method) {
  const auto shared = std::make_shared<const OwnMethod>(std::move(method));
  measures_to_extend().extend(
      shared->info, [shared](const Options& options) { return std::make_unique<own_measure::OwnMeasure>(*shared, options); });
}

}  // namespace holdfast::python
