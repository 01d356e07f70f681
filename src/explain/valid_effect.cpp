// valid_effect: what valid changes of one feature of a table do to the explained class, one value for each feature, not column.
//     number     mean of |f(row with the next valid value) - f(row)| * deviation / move, over the moves up and down that stay in
//     its
//                range; the move is the feature's step, or a tenth of its deviation where it has none
//     category   mean of |f(row with another level) - f(row)| over its other levels
// f is the log-odds of the class, z_c - log sum of exp z_j over the others: the logit margin of two classes (target=logit); its
// probability or its cross-entropy. Deviations are those of the training rows: the effect of a number is per deviation.
//
// Ours. It depends only on the model's values on valid rows, so two models that agree on those have the same map. A gradient does
// not: functions that are zero on every valid row change it at will. With target=probability even a linear model's ranking moves
// with the probability; with logit it does not.
//
// One batch holds all changed rows: as many passes as there are moves, and one for the row itself. Differentiable by the numbers
// with first derivatives of the model alone. On a processor maps without derivatives are made in plain loops, which cost little
// beside the passes; the conformance suite holds them against the tensors' way. Networks of one hidden layer and two classes have
// a shorter way (ChangedRows): a changed row differs in a few columns, so most of the first layer is known. Other chains of
// linear layers run in blocks of rows that stay in the cache (LinearChain).
#include <algorithm>
#include <cmath>
#include <limits>

#include "finish.h"
#include "graph.h"
#include "holdfast/core/error.h"
#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"
#include "holdfast/explain/batch_rows.h"
#include "holdfast/explain/explainer.h"
#include "holdfast/explain/valid_moves.h"
#include "holdfast/model/linear_chain.h"
#include "shallow_effects.h"

namespace holdfast::explain::valid_effect {

constexpr std::int64_t kLeastTop = 2, kTopShare = 3;

const MethodInfo kInfo{
    .name = "valid_effect",
    .summary = "what valid changes of a feature do to the class: another level, the next value; one value a feature of the table",
    .options = {target_option("logit")},
    .needs = {"a table with a schema: groups of one-hot columns, deviations of numbers"},
    .notes =
        "Depends on valid rows alone: two models that agree on them have the same map. Attacks must keep rows valid "
        "(--switches or --valid). k is a third of the features, at least 2, unless given."};

// The same as tensors, for autograd: who owns a changed row, where its effect goes and how much it counts, and which elements are
// added to numbers and put into groups.
struct Changes {
  std::vector<std::int64_t> owner, place;  // place: in the maps, row after row
  std::vector<double> weight;
  struct Elements {
    std::vector<std::int64_t> row, column;
    std::vector<double> value;
    void add(std::int64_t at, std::int64_t where, double what) {
      row.push_back(at);
      column.push_back(where);
      value.push_back(what);
    }
  };
  Elements added, replaced;

  // `rows` [B, n] double on the CPU.
  Changes(const Moves& moves, const at::Tensor& rows) {
    const double* row = rows.const_data_ptr<double>();
    for (std::int64_t b = 0; b < rows.size(0); ++b, row += rows.size(1)) {
      const auto add = [&](std::int64_t feature, double weight_of_row) {
        owner.push_back(b);
        place.push_back(b * moves.features + feature);
        weight.push_back(weight_of_row);
        return std::ssize(owner) - 1;
      };
      for_each_change(
          moves, row,
          [&](const Number& number, double move, double share) { added.add(add(number.feature, share), number.column, move); },
          [&](const Category& category, std::int64_t level, double share) {
            const std::int64_t at = add(category.feature, share);
            for (const std::int64_t column : category.columns) replaced.add(at, column, column == level ? 1 : 0);
          });
    }
  }
};

// f(moved) - f(clean) in double precision, from log-odds; exact to the last digits wherever the softmax saturates.
at::Tensor difference(const at::Tensor& moved, const at::Tensor& clean, ExplainedQuantity quantity) {
  switch (quantity) {
    case ExplainedQuantity::kLogit:
      return moved - clean;
    case ExplainedQuantity::kCrossEntropy:
      return at::softplus(-moved) - at::softplus(-clean);
    case ExplainedQuantity::kProbability:
      return at::where(moved + clean > 0, at::sigmoid(-clean) - at::sigmoid(-moved), at::sigmoid(moved) - at::sigmoid(clean));
  }
  return {};
}

// z_c - log of the sum of exp z_j over the other classes, double.
at::Tensor log_odds(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor rows = logits.to(at::kDouble), column = targets.unsqueeze(1);
  const at::Tensor own = rows.gather(1, column).squeeze(1);
  if (rows.size(1) == 2) return own - rows.gather(1, 1 - column).squeeze(1);
  return own - at::logsumexp(rows.scatter(1, column, -std::numeric_limits<double>::infinity()), 1);
}

template <class Scalar>
double plain_log_odds(const Scalar* logits, std::int64_t classes, std::int64_t target) {
  const double own = static_cast<double>(logits[target]);
  if (classes == 2) return own - static_cast<double>(logits[1 - target]);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != target) largest = std::max(largest, static_cast<double>(logits[c]));
  }
  for (std::int64_t c = 0; c < classes; ++c) {
    if (c != target) sum += std::exp(static_cast<double>(logits[c]) - largest);
  }
  return own - largest - std::log(sum);
}

struct Scaled {
  at::Tensor maps, log_scale, scale;
};

// Each sample's largest effect is its scale, a constant.
Scaled scale(const at::Tensor& maps, const ExplainTask& task) {
  const at::Tensor largest = maps.detach().amax(1, /*keepdim=*/true);
  const at::Tensor scale = at::where(largest > 0, largest, at::ones_like(largest));
  const at::ScalarType type = task.samples.inputs.scalar_type();
  return {(maps / scale).to(type), scale.squeeze(1).log().to(type), scale};
}

// Logits of rows, in blocks that stay in the cache where the model is a chain of linear layers.
class RowLogits {
 public:
  explicit RowLogits(const ExplainTask& task) : task_(task) {
    const Network* network = task.model.network();
    const at::Tensor& inputs = task.samples.inputs;
    if (network == nullptr || inputs.dim() != 2) return;
    chain_ = LinearChain::of(*network, task.rule, inputs.detach().contiguous());
    if (chain_) kept_.resize(static_cast<std::size_t>(chain_->kept(false)));
  }
  // `rows` [R, n] contiguous.
  at::Tensor operator()(const at::Tensor& rows) {
    if (!chain_) return task_logits(task_, rows).contiguous();
    const std::int64_t count = rows.size(0), most = chain_->block_rows(), n = chain_->inputs(), classes = chain_->classes();
    at::Tensor logits = at::empty({count, classes}, rows.options());
    for (std::int64_t begin = 0; begin < count; begin += most) {
      chain_->forward(rows.const_data_ptr<float>() + begin * n, std::min(most, count - begin), false, kept_.data(),
                      logits.mutable_data_ptr<float>() + begin * classes);
    }
    return logits;
  }

 private:
  const ExplainTask& task_;
  std::optional<LinearChain> chain_;
  std::vector<float> kept_;
};

class HeldEffects final : public Linearization {
 public:
  HeldEffects(ShallowEffects effects, const ExplainTask& task) : effects_(std::move(effects)) {
    const at::NoGradGuard no_graph;
    const Scaled scaled = valid_effect::scale(effects_.maps(true), task);
    scale_ = scaled.scale;
    explanation_ = {.maps = scaled.maps, .log_scale = scaled.log_scale, .logits = effects_.logits()};
  }
  at::Tensor pullback(const at::Tensor& cotangent) override {
    const at::NoGradGuard no_graph;
    return effects_.pullback(cotangent.to(at::kDouble) / scale_);
  }

 private:
  ShallowEffects effects_;
  at::Tensor scale_;
};

class ValidEffect final : public Explainer {
 public:
  explicit ValidEffect(const Options& options)
      : Explainer(options.canonical()), quantity_(parse_explained_quantity(options.word("target"))) {}

  void check(const Model&) const override {}  // every model gives logits
  void check_task(const ExplainTask& task) const override {
    if (task.samples.schema == nullptr) {
      usage_error(
          "{}: the table has no schema; list its features and groups in one (--schema FILE; `holdfast data schema NAME` shows "
          "how)",
          name());
    }
    check_schema(*task.samples.schema);
  }
  const Schema& map_schema(const Schema& schema) const override { return schema.table != nullptr ? *schema.table : schema; }
  bool needs_valid_rows() const override { return true; }
  std::optional<std::int64_t> usual_top(const Schema& schema) const override {
    return std::max<std::int64_t>(kLeastTop, std::ssize(schema.table_features()) / kTopShare);
  }
  std::int64_t evaluations(const Schema& schema) const override { return 1 + Moves(schema).most(); }

  Explanation attribute(const ExplainTask& task) const override {
    check_task(task);
    const at::NoGradGuard no_graph;
    const Moves moves(*task.samples.schema);
    if (auto shallow = ShallowEffects::of(task, moves, quantity_)) {
      const Scaled scaled = scale(shallow->maps(false), task);
      return {.maps = scaled.maps, .log_scale = scaled.log_scale, .logits = shallow->logits()};
    }
    const std::int64_t count = task.samples.count();
    const std::int64_t some =
        even_part(count, std::max<std::int64_t>(1, BatchRows(task).most(Pass::kForward) / (1 + moves.most())));
    RowLogits logits_of(task);
    std::vector<Effects> parts;
    for (std::int64_t begin = 0; begin < count; begin += some) {
      throw_if_interrupted();
      const at::Tensor inputs = task.samples.inputs.slice(0, begin, begin + some),
                       targets = task.samples.targets.slice(0, begin, begin + some);
      const bool plain = inputs.is_cpu() && (inputs.scalar_type() == at::kFloat || inputs.scalar_type() == at::kDouble);
      parts.push_back(plain ? plain_effects(logits_of, moves, inputs, targets) : effects(task, moves, inputs, targets));
    }
    std::vector<at::Tensor> maps, logits;
    for (const Effects& part : parts) {
      maps.push_back(part.maps);
      logits.push_back(part.logits);
    }
    const Scaled scaled = scale(at::cat(maps), task);
    return {.maps = scaled.maps, .log_scale = scaled.log_scale, .logits = at::cat(logits)};
  }

  std::unique_ptr<Linearization> linearize(const ExplainTask& task) const override {
    check_task(task);
    if (auto shallow = ShallowEffects::of(task, Moves(*task.samples.schema), quantity_))
      return std::make_unique<HeldEffects>(std::move(*shallow), task);
    const at::AutoGradMode with_graph(true);
    const at::Tensor inputs = task.samples.inputs.detach().requires_grad_();
    const Effects found = effects(task, Moves(*task.samples.schema), inputs, task.samples.targets);
    const Scaled scaled = scale(found.maps, task);
    return hold_graph(inputs, scaled.maps, scaled.log_scale, found.logits);
  }

  at::Tensor differentiable(const ExplainTask& task) const override {
    check_task(task);
    return effects(task, Moves(*task.samples.schema), task.samples.inputs, task.samples.targets)
        .maps.to(task.samples.inputs.scalar_type());
  }

 private:
  struct Effects {
    at::Tensor maps;    // [B, features] double, in true units
    at::Tensor logits;  // [B, classes] of the rows themselves
  };

  void check_schema(const Schema& schema) const {
    if (schema.layout.kind != Layout::Kind::kVector || schema.layout.sides != 1)
      usage_error("{}: the samples are a {}; it is for tables", name(), schema.layout.describe());
    if (schema.features.empty()) {
      usage_error(
          "{}: the schema has no features; list them with low, high and deviation, and one-hot columns in groups (--schema FILE; "
          "`holdfast data schema NAME` shows how)",
          name());
    }
    for (const TableFeature& feature : schema.table_features()) {
      if (feature.is_category || schema.features[static_cast<std::size_t>(feature.columns[0])].deviation) continue;
      usage_error(
          "{}: feature '{}' has no deviation in the schema; add \"deviation\": its standard deviation over the training rows, in "
          "the units of the inputs, or put its column into a group if it is a level of a category",
          name(), feature.name);
    }
  }

  void check_classes(const at::Tensor& logits) const {
    if (logits.size(1) < 2) usage_error("{}: the model has one class, whose odds never change", name());
  }

  // Each row with its changed rows behind it: one pass.
  Effects plain_effects(RowLogits& logits_of, const Moves& moves, const at::Tensor& inputs, const at::Tensor& targets) const {
    const at::Tensor from = inputs.contiguous(), classes = targets.cpu().contiguous();
    const std::int64_t count = from.size(0), n = from.size(1);
    struct Part {
      std::int64_t feature;
      double weight;
    };
    std::vector<Part> parts;             // of every changed row, in order
    std::vector<std::int64_t> first{0};  // the row of each sample
    parts.reserve(static_cast<std::size_t>(count * moves.most()));
    at::Tensor rows = at::empty({count * (1 + moves.most()), n}, from.options());
    const at::Tensor maps = at::zeros({count, moves.features}, at::kDouble);
    at::Tensor own;
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "valid_effect", [&] {
      scalar_t* next = rows.mutable_data_ptr<scalar_t>();
      const auto copy = [&](const scalar_t* row) {
        std::copy(row, row + n, next);
        next += n;
        return next - n;
      };
      for (std::int64_t b = 0; b < count; ++b) {
        const scalar_t* row = from.const_data_ptr<scalar_t>() + b * n;
        copy(row);
        for_each_change(
            moves, row,
            [&](const Number& number, double move, double weight) {
              copy(row)[number.column] += static_cast<scalar_t>(move);
              parts.push_back({number.feature, weight});
            },
            [&](const Category& category, std::int64_t level, double weight) {
              scalar_t* changed = copy(row);
              for (const std::int64_t column : category.columns) changed[column] = column == level;
              parts.push_back({category.feature, weight});
            });
        first.push_back((next - rows.const_data_ptr<scalar_t>()) / n);
      }
      const at::Tensor logits = logits_of(rows.slice(0, 0, first.back()));
      check_classes(logits);
      own = logits.index_select(
          0, at::tensor(at::ArrayRef<std::int64_t>(first).slice(0, static_cast<std::size_t>(count)), at::kLong));
      const std::int64_t width = logits.size(1);
      const Part* part = parts.data();
      for (std::int64_t b = 0; b < count; ++b) {
        const auto odds = [&](std::int64_t row) {
          return plain_log_odds(logits.const_data_ptr<scalar_t>() + row * width, width,
                                classes.const_data_ptr<std::int64_t>()[b]);
        };
        const std::int64_t begin = first[static_cast<std::size_t>(b)], end = first[static_cast<std::size_t>(b) + 1];
        const double clean = odds(begin);
        double* map = maps.mutable_data_ptr<double>() + b * moves.features;
        for (std::int64_t row = begin + 1; row < end; ++row, ++part)
          map[part->feature] += std::abs(plain_difference(odds(row), clean, quantity_)) * part->weight;
      }
    });
    return {maps, own};
  }

  // Rows of the batch first, changed rows behind them.
  Effects effects(const ExplainTask& task, const Moves& moves, const at::Tensor& inputs, const at::Tensor& targets) const {
    const std::int64_t count = inputs.size(0);
    const Changes changes(moves, inputs.detach().to(at::kCPU, at::kDouble).contiguous());
    const auto index = [&](const std::vector<std::int64_t>& positions) {
      return at::tensor(at::ArrayRef<std::int64_t>(positions), at::kLong).to(inputs.device());
    };
    const auto numbers = [&](const std::vector<double>& values, at::ScalarType type) {
      return at::tensor(at::ArrayRef<double>(values), at::kDouble).to(inputs.device(), type);
    };
    const auto elements = [&](const Changes::Elements& all) {
      return c10::List<std::optional<at::Tensor>>({index(all.row), index(all.column)});
    };
    const at::Tensor owner = index(changes.owner);
    at::Tensor rows = inputs.index_select(0, owner);
    rows = rows.index_put(elements(changes.added), numbers(changes.added.value, inputs.scalar_type()), /*accumulate=*/true);
    rows = rows.index_put(elements(changes.replaced), numbers(changes.replaced.value, inputs.scalar_type()));
    const at::Tensor logits = task_logits(task, at::cat({inputs, rows}));
    check_classes(logits);
    const at::Tensor odds = log_odds(logits, at::cat({targets, targets.index_select(0, owner)}));
    const at::Tensor clean = odds.slice(0, 0, count), moved = odds.slice(0, count);
    const at::Tensor effect =
        difference(moved, clean.index_select(0, owner), quantity_).abs() * numbers(changes.weight, at::kDouble);
    const at::Tensor maps = at::zeros({count * moves.features}, effect.options()).index_add(0, index(changes.place), effect);
    return {maps.view({count, moves.features}), logits.slice(0, 0, count).detach()};
  }

  ExplainedQuantity quantity_;
};

void add_to(Registry<Explainer>& registry) {
  registry.add<ValidEffect>(kInfo);
}

}  // namespace holdfast::explain::valid_effect
