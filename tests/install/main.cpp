// Compares two maps and explains a network's prediction with the installed library.
#include <cstdio>
#include <vector>

#include <ATen/ATen.h>
#include <holdfast/explain/explainer.h>
#include <holdfast/metric/metric.h>
#include <holdfast/model/model.h>

int main() {
  using namespace holdfast::metric;
  const Schema schema = Schema::of(Layout::vector(4));
  const std::vector<double> original{4, 3, 2, 1}, perturbed{4, 1, 2, 3};
  const double overlap = metrics().make("top_k(k=2)")->compare({original, schema}, {perturbed, schema});

  const std::unique_ptr<Model> model = make_model(architectures().make("mlp(inputs=4,hidden=8,classes=2)")->build(0));
  const at::Tensor inputs = at::ones({3, 4});
  const at::Tensor targets = predicted_class(model->logits(inputs));
  const Explanation explanation =
      explainers()
          .make("saliency")
          ->attribute({.model = *model,
                       .samples = {.inputs = inputs, .targets = targets, .ids = at::arange(3), .schema = share_schema(schema)}});
  std::printf("overlap %.2f, maps %lldx%lld\n", overlap, static_cast<long long>(explanation.maps.size(0)),
              static_cast<long long>(explanation.maps.size(1)));
  return overlap == 0.5 && explanation.maps.size(1) == 4 ? 0 : 1;
}
