#include "holdfast/train/objective.h"

#include "holdfast/core/error.h"
#include "holdfast/core/torch.h"

namespace holdfast::train {
namespace {

class NetworkTrainee final : public Trainee {
 public:
  NetworkTrainee(Network& network, const BatchShare* share) : network_(network), share_(share) {
    for (const Node& node : network.nodes()) {
      const auto* dropout = std::get_if<op::Dropout>(&node.operation);
      modes_differ_ |= std::holds_alternative<op::BatchNorm>(node.operation) || (dropout != nullptr && dropout->rate > 0);
    }
  }

  at::Tensor training_logits(const at::Tensor& inputs, std::uint64_t seed) override {
    return network_.run_training(inputs, seed, share_);
  }
  at::Tensor logits(const at::Tensor& inputs) override { return network_.logits(inputs); }
  bool modes_differ() const override { return modes_differ_; }
  const Network* network() const override { return &network_; }

 private:
  Network& network_;
  const BatchShare* share_;
  bool modes_differ_ = false;
};

// "r2et(top_k=8,gap=0.1)" without "gap" -> "r2et(top_k=8)".
std::string without(const std::string& name, const std::vector<std::string>& weights) {
  MethodCall call = parse_method_call(name);
  std::erase_if(call.options, [&](const auto& option) { return std::ranges::find(weights, option.first) != weights.end(); });
  std::string kind = call.name;
  for (const auto& [option, value] : call.options) kind += "," + option + "=" + value;
  return kind;
}

}  // namespace

Objective::Objective(std::string name, const std::vector<std::string>& weights)
    : name_(std::move(name)), kind_(without(name_, weights)) {}

void Objective::fit(const Network&, const Dataset&, std::uint64_t) const {
  HOLDFAST_CHECK(!fits());  // then it is overridden, and nobody else calls it
}

std::unique_ptr<Trainee> make_trainee(Network& network, const BatchShare* share) {
  return std::make_unique<NetworkTrainee>(network, share);
}

at::Tensor cross_entropies(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::None);
}

Loss loss_of(const Objective& objective, Trainee& trainee, const TrainBatch& batch) {
  const std::vector<Term> terms = objective.terms(batch.progress);
  const std::vector<at::Tensor> values = objective.values(trainee, batch);
  HOLDFAST_CHECK(terms.size() == values.size());
  Loss loss;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const at::Tensor mean = values[i].mean();
    loss.parts.emplace_back(terms[i].name, mean.detach());
    if (terms[i].weight == 0) continue;
    const at::Tensor weighted = terms[i].weight == 1 ? mean : mean * terms[i].weight;
    loss.total = loss.total.defined() ? loss.total + weighted : weighted;
  }
  HOLDFAST_CHECK(loss.total.defined());
  return loss;
}

Loss loss_of(const Objective& objective, Network& network, const TrainBatch& batch) {
  return loss_of(objective, *make_trainee(network), batch);
}

}  // namespace holdfast::train
