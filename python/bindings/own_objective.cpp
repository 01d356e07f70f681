// Objectives of Python: a model in training, inputs and labels in, a value for each sample and term out.
#include <pybind11/stl.h>

#include "holdfast/train/objective.h"
#include "lent.h"
#include "own_method.h"

namespace holdfast::python {
namespace own_objective {

class OwnObjective final : public Objective {
 public:
  OwnObjective(const OwnMethod& method, const Options& options) : Objective(options.canonical()), function_(method.function) {
    for (const Json& term : method.facts.at("terms")) {
      const Json& weight = term.at("weight");  // a number, or the option that holds it
      terms_.push_back({term.at("name").get<std::string>(),
                        weight.is_string() ? options.real(weight.get<std::string>()) : weight.get<double>()});
    }
    const PythonTurn turn;
    keywords_ = share(keywords_of(method.info, options));
  }

  std::vector<Term> terms(double) const override { return terms_; }

  std::vector<at::Tensor> values(Trainee& trainee, const TrainBatch& batch) const override {
    const PythonTurn turn;
    const Lending<TraineeView> lent(std::make_shared<TraineeView>(trainee, batch));
    return py::cast<std::vector<at::Tensor>>(
        (*function_)(py::cast(lent.view()), batch.inputs, batch.labels, **py::dict(*keywords_)));
  }

 private:
  std::vector<Term> terms_;
  SharedObject function_, keywords_;
};

}  // namespace own_objective

void extend_objectives(OwnMethod method) {
  const auto shared = std::make_shared<const OwnMethod>(std::move(method));
  objectives_to_extend().extend(
      shared->info, [shared](const Options& options) { return std::make_unique<own_objective::OwnObjective>(*shared, options); });
}

}  // namespace holdfast::python
