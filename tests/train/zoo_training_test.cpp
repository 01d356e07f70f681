// What the objectives are for: trained with them, rankings get thicker.
#include "holdfast/measure/measure.h"
#include "holdfast/model/model.h"
#include "holdfast/train/trainer.h"
#include "support/errors.h"

namespace holdfast::train {
namespace {

TrainOptions of_recipe(const std::string& recipe) {
  return {.architecture = "mlp(hidden=16)",
          .recipe = recipe,
          .epochs = 20,
          .batch_size = 64,
          .learning_rate = 0.02,
          .schedule = "cosine",
          .early_stopping = {.restore_best = false},
          .threads = 1,
          .show_progress = false};
}

struct Trained {
  double thickness = 0, auc = 0;
};

Trained trained(const Dataset& dataset, const std::string& recipe) {
  const TrainResult result = train_network(dataset, of_recipe(recipe));
  const auto model = make_model(Network(result.network));
  const auto explainer = explainers().make("saliency");
  const at::Tensor inputs = dataset.inputs_of(dataset.test).slice(0, 0, 60);
  const Measurement thickness = measures()
                                    .make("thickness(k=4,endpoints=8,points=4)")
                                    ->run({.model = *model,
                                           .explainer = *explainer,
                                           .samples = {.inputs = inputs,
                                                       .targets = predicted_class(model->logits(inputs)),
                                                       .ids = at::arange(inputs.size(0)),
                                                       .schema = share_schema(dataset.schema)},
                                           .epsilon = 1});
  double sum = 0;
  for (const double value : thickness.values) sum += value;
  return {sum / static_cast<double>(thickness.values.size()), result.test->auc.mean};
}

TEST(Zoo, TrainingMakesRankingsThicker) {
  const Dataset dataset = load_dataset("synthetic(samples=1500)");
  const Trained vanilla = trained(dataset, "vanilla");
  EXPECT_LT(vanilla.thickness, 0.995);
  for (const char* recipe :
       {"r2et(top_k=4,gap=0.02,curvature=0.03)", "r2et_mm(top_k=4,gap=0.02,curvature=0.03)", "r2et_no_h(top_k=4,gap=0.02)",
        "r2et_mm_no_h(top_k=4,gap=0.02)", "r2et_no_h(top_k=4,gap=0.02,activation=softplus)", "est_h(curvature=0.03)",
        "pair_hinge(top_k=4,radius=1,hinge=0.3,between=0,gate=0)",
        "pair_hinge(top_k=4,radius=1,hinge=0.3,between=0,gate=0,activation=softplus,beta=5)", "sp"}) {
    const Trained robust = trained(dataset, recipe);
    EXPECT_GT(robust.thickness, vanilla.thickness + 0.001) << recipe;
    EXPECT_GT(robust.auc, vanilla.auc - 0.03) << recipe;
  }
}

// Curvature alone need not make rankings thicker; it falls.
TEST(Zoo, TrainingLowersWhatIsPenalised) {
  const Dataset dataset = load_dataset("synthetic(samples=1500)");
  for (const char* objective : {"est_h", "exact_h", "ssr"}) {
    const auto last_curvature = [&](double weight) {
      const std::string recipe = fmt::format("{}(curvature={})", objective, weight);
      const TrainResult result = train_network(dataset, of_recipe(recipe));
      EXPECT_EQ(result.history.back().parts[1].first, "curvature");
      return result.history.back().parts[1].second;
    };
    EXPECT_LT(last_curvature(0.1), 0.7 * last_curvature(0)) << objective;
  }
}

// Each term by its own weight, the others off.
TEST(Zoo, TrainingLowersEachTermOfThePairHinge) {
  const Dataset dataset = load_dataset("synthetic(samples=1500)");
  const auto last = [&](const std::string& weights, const std::string& term) {
    const TrainResult result = train_network(dataset, of_recipe(fmt::format("pair_hinge(top_k=4,radius=0.5,{})", weights)));
    for (const auto& [name, value] : result.history.back().parts) {
      if (name == term) return value;
    }
    ADD_FAILURE() << "no term " << term;
    return 0.0;
  };
  EXPECT_LT(last("hinge=0.3,between=0,gate=0", "hinge"), 0.7 * last("hinge=0,between=0,gate=0", "hinge"));
  EXPECT_LT(last("hinge=0.3,between=0.3,gate=0", "between"), last("hinge=0.3,between=0,gate=0", "between") - 0.1);
  EXPECT_LT(last("hinge=0,between=0,gate=0.3", "gate"), 0.7 * last("hinge=0,between=0,gate=0", "gate"));
}

}  // namespace
}  // namespace holdfast::train
