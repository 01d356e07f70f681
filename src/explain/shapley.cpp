// shapley: Shapley values of the parts of a sample, over random orders in which they replace a baseline.
//     I_i(x) = mean over orders of F(x_{before i} + x_i) - F(x_{before i})        what is not yet there is the baseline's
// Shapley, "A Value for n-Person Games", 1953; Castro, Gomez, Tejada, "Polynomial calculation of the Shapley value based on
// sampling", 2009. Each random order is used with its reverse, which halves the work for the same error on most functions
// (Mitchell et al., "Sampling Permutations for Shapley Value Estimation", JMLR 2022). Orders are those of the sample's id.
//
// Parts are those of occlusion (parts.h), windows of images side by side. Every order adds up to F(x) - F(baseline), and so does
// the map: a part's value is shared equally by its elements; a one-hot group's is put at the level that is on.
//
// Needs no gradients of the model and has none itself.
#include <algorithm>

#include "baseline.h"
#include "completeness.h"
#include "finish.h"
#include "graph.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/rng.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "holdfast/explain/explainer.h"
#include "parts.h"

namespace holdfast::explain::shapley {

const MethodInfo kInfo{.name = "shapley",
                       .summary = "Shapley values of columns, groups, windows, steps or tokens, over random orders",
                       .citation = "Castro, Gomez, Tejada, Polynomial calculation of the Shapley value based on sampling, 2009",
                       .options = {{"samples", 8, at_least(1), "random orders, each used with its reverse"},
                                   {"window", 4, at_least(1), "side of the squares that are replaced, in pixels; images only"},
                                   baseline_option(),
                                   blur_option(),
                                   target_option(),
                                   project_option()},
                       .notes = "Has no gradient: only attacks without gradients can move it."};

class Shapley final : public Explainer {
 public:
  explicit Shapley(const Options& options)
      : Explainer(options.canonical()),
        orders_(2 * options.integer("samples")),
        window_(options.integer("window")),
        quantity_(parse_explained_quantity(options.word("target"))),
        baseline_(options, name()),
        projection_(options, name()) {}

  void check(const Model&) const override {}  // every model gives logits
  void check_task(const ExplainTask& task) const override {
    baseline_.check(task);
    (void)projection_.applies(task);
    check_window(layout_of(task), window_, name());
  }
  bool is_differentiable() const override { return false; }
  std::int64_t evaluations(const Schema& schema) const override {
    return 2 + orders_ * (parts_of(schema.layout, projection_.applies(&schema) ? &schema : nullptr).count() - 1);
  }

  Explanation attribute(const ExplainTask& task) const override {
    check_task(task);
    const at::NoGradGuard no_graph;
    const bool groups = projection_.applies(task);
    const Parts parts = parts_of(layout_of(task), groups ? task.samples.schema.get() : nullptr);
    const at::Tensor covers = parts.masks(0, parts.count()).flatten(1);  // [parts, elements]
    const at::Tensor inputs = task.samples.inputs, baseline = baseline_.of(task, groups).at(inputs).expand_as(inputs);
    const at::Tensor logits = in_batches(task, inputs), reference = in_batches(task, baseline);

    std::vector<at::Tensor> values;
    for (std::int64_t sample = 0; sample < inputs.size(0); ++sample) {
      throw_if_interrupted();
      values.push_back(values_of(task, sample, inputs[sample], baseline[sample], covers, logits, reference));
    }
    // [B, parts] over the elements of each part.
    const at::Tensor weights = covers.to(at::kDouble).to(inputs.device());
    at::Tensor map;
    if (groups) {
      map = at::matmul(at::stack(values), weights).view_as(inputs) * levels_that_are_on(inputs, *task.samples.schema);
    } else {
      map = at::matmul(at::stack(values), weights / weights.sum(1, /*keepdim=*/true)).view_as(inputs);
    }
    Explanation explanation = scaled_explanation(map, inputs, logits);
    explanation.delta = completeness_delta(explanation, reference, task.samples.targets, quantity_);
    return explanation;
  }

 private:
  Parts parts_of(const Layout& layout, const Schema* groups) const { return Parts(layout, groups, window_, window_); }

  static at::Tensor in_batches(const ExplainTask& task, const at::Tensor& rows) {
    const std::int64_t some = even_part(rows.size(0), BatchRows(task).most(Pass::kForward));
    std::vector<at::Tensor> logits;
    for (std::int64_t first = 0; first < rows.size(0); first += some)
      logits.push_back(task_logits(task, rows.slice(0, first, first + some)));
    return at::cat(logits);
  }

  // [orders, parts]: the place of each part in each order.
  at::Tensor places(const ExplainTask& task, std::int64_t sample, std::int64_t parts) const {
    RandomStream stream(task.seed, "shapley.orders", static_cast<std::uint64_t>(task.samples.ids[sample].item<std::int64_t>()));
    at::Tensor places = at::empty({orders_, parts}, at::kLong);
    auto place = places.accessor<std::int64_t, 2>();
    for (std::int64_t order = 0; order < orders_; order += 2) {
      const std::vector<std::int64_t> permutation = stream.permutation(parts);
      for (std::int64_t part = 0; part < parts; ++part) {
        place[order][part] = permutation[static_cast<std::size_t>(part)];
        place[order + 1][part] = parts - 1 - place[order][part];
      }
    }
    return places;
  }

  // [parts] double: each part's mean contribution. Row (order, t) has the parts of the first t places, t = 1 .. parts - 1.
  at::Tensor values_of(const ExplainTask& task, std::int64_t sample, const at::Tensor& input, const at::Tensor& baseline,
                       const at::Tensor& covers, const at::Tensor& logits, const at::Tensor& reference) const {
    const std::int64_t parts = covers.size(0), between = parts - 1;
    const at::Device device = input.device();
    const at::Tensor place = places(task, sample, parts);
    // Elements of no part are context: they are always there.
    const at::Tensor own = covers.to(at::kLong).argmax(0), loose = covers.any(0).logical_not();
    const at::Tensor of_elements = place.index_select(1, own).masked_fill_(loose, -1).to(device);
    const at::Tensor target = task.samples.targets.slice(0, sample, sample + 1);
    const auto value = [&](const at::Tensor& rows) { return explained_value(rows, target.expand({rows.size(0)}), quantity_); };

    at::Tensor path = at::empty({orders_, parts + 1}, at::kDouble);
    path.select(1, 0).copy_(value(reference.slice(0, sample, sample + 1)).expand({orders_}));
    path.select(1, parts).copy_(value(logits.slice(0, sample, sample + 1)).expand({orders_}));
    const std::int64_t rows = orders_ * between;
    if (rows > 0) {
      std::vector<at::Tensor> found;
      const std::int64_t some = even_part(rows, BatchRows(task).most(Pass::kForward));
      for (std::int64_t first = 0; first < rows; first += some) {
        const at::Tensor row = at::arange(first, std::min(first + some, rows), at::TensorOptions(device).dtype(at::kLong));
        const at::Tensor there = of_elements.index_select(0, row.div(between, "floor")) <= row.remainder(between).unsqueeze(1);
        std::vector<std::int64_t> shape = input.sizes().vec();
        shape.insert(shape.begin(), row.size(0));
        found.push_back(value(task_logits(task, at::where(there.view(shape), input, baseline))));
      }
      path.slice(1, 1, parts).copy_(at::cat(found).view({orders_, between}));
    }
    return path.diff(1, 1).gather(1, place).mean(0).to(device);
  }

  std::int64_t orders_, window_;
  ExplainedQuantity quantity_;
  BaselineOption baseline_;
  Projection projection_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<Shapley>(kInfo);
}

}  // namespace holdfast::explain::shapley
