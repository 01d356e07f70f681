// Attacks of Python: a generator of points. The engine brings them into the threat model, charges, judges and verifies them.
#include "holdfast/attack/proposals.h"
#include "holdfast/core/torch.h"
#include "lent.h"
#include "own_method.h"
#include "plain_values.h"

namespace holdfast::python {
namespace own_attack {

class OwnProposals final : public Proposals {
 public:
  OwnProposals(const SharedObject& function, const SharedObject& keywords, const AttackTask& task)
      : lent_(std::make_shared<AttackView>(task)) {
    const PythonTurn turn;
    points_ = share((*function)(py::cast(lent_.view()), **py::dict(*keywords)));
  }

  std::optional<at::Tensor> next(const std::vector<double>& values) override {
    const PythonTurn turn;
    const py::object found = (*points_)(values.empty() ? py::object(py::none()) : py::cast(to_tensor(values)));
    if (found.is_none()) return std::nullopt;
    return py::cast<at::Tensor>(found);
  }
  std::int64_t take_evaluations() override { return lent_.view()->take_evaluations(); }

 private:
  Lending<AttackView> lent_;
  SharedObject points_;
};

class OwnAttack final : public ProposingAttack {
 public:
  OwnAttack(const OwnMethod& method, const Options& options) : ProposingAttack(options.canonical()), function_(method.function) {
    const PythonTurn turn;
    keywords_ = share(keywords_of(method.info, options));
  }

  std::unique_ptr<Proposals> start(const AttackTask& task) const override {
    return std::make_unique<OwnProposals>(function_, keywords_, task);
  }

 private:
  SharedObject function_, keywords_;
};

}  // namespace own_attack

void extend_attacks(OwnMethod method) {
  const auto shared = std::make_shared<const OwnMethod>(std::move(method));
  attacks_to_extend().extend(
      shared->info, [shared](const Options& options) { return std::make_unique<own_attack::OwnAttack>(*shared, options); });
}

}  // namespace holdfast::python
