#include "shallow_effects.h"

#include <algorithm>
#include <utility>

#include "holdfast/core/torch.h"

namespace holdfast::explain::valid_effect {

ShallowEffects::ShallowEffects(LinearChain chain, ChangedRows rows, at::Tensor inputs, at::Tensor targets, Moves moves,
                               ExplainedQuantity quantity)
    : chain_(std::move(chain)),
      rows_(std::move(rows)),
      inputs_(std::move(inputs)),
      targets_(std::move(targets)),
      moves_(std::move(moves)),
      quantity_(quantity) {}

std::optional<ShallowEffects> ShallowEffects::of(const ExplainTask& task, const Moves& moves, ExplainedQuantity quantity) {
  const Network* network = task.model.network();
  const at::Tensor inputs = task.samples.inputs.detach();
  if (network == nullptr || inputs.dim() != 2 || !inputs.is_cpu() || inputs.size(1) != task.samples.schema->layout.inputs())
    return std::nullopt;
  std::optional<LinearChain> chain = LinearChain::of(*network, task.rule, inputs.contiguous());
  if (!chain) return std::nullopt;
  std::optional<ChangedRows> rows = ChangedRows::of(*chain);
  const at::Tensor targets = task.samples.targets.cpu().contiguous();
  if (!rows || rows->inputs() != inputs.size(1) || targets.scalar_type() != at::kLong) return std::nullopt;
  const std::int64_t* classes = targets.const_data_ptr<std::int64_t>();
  if (std::any_of(classes, classes + targets.numel(), [](std::int64_t one) { return one < 0 || one > 1; })) return std::nullopt;
  return ShallowEffects(std::move(*chain), std::move(*rows), inputs.contiguous(), targets, moves, quantity);
}

at::Tensor ShallowEffects::maps(bool kept) {
  const at::Tensor maps = at::zeros({count(), moves_.features}, at::kDouble);
  const std::int64_t most = moves_.most();
  if (kept) slopes_ = at::empty({count() * (1 + most), rows_.units()}, inputs_.options());
  std::vector<float> differences(static_cast<std::size_t>(most)),
      slopes(static_cast<std::size_t>(kept ? 0 : (1 + most) * rows_.units()));
  const at::Tensor odds = logits();
  for (std::int64_t b = 0; b < count(); ++b) {
    const float* row = inputs_.const_data_ptr<float>() + b * inputs_.size(1);
    read_changes(row);
    rows_.differences(row, changes_, ends_, differences.data(),
                      kept ? slopes_.mutable_data_ptr<float>() + b * (1 + most) * rows_.units() : slopes.data());
    const double sign = targets_.const_data_ptr<std::int64_t>()[b] == 1 ? 1 : -1;
    const float* own = odds.const_data_ptr<float>() + 2 * b;
    const double clean = sign * (static_cast<double>(own[1]) - static_cast<double>(own[0]));
    double* map = maps.mutable_data_ptr<double>() + b * moves_.features;
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      const double moved = clean + sign * static_cast<double>(differences[r]);
      // The odds are compared as they were computed: their difference is exact where the sum above is not.
      const double effect = quantity_ == ExplainedQuantity::kLogit ? sign * static_cast<double>(differences[r])
                                                                   : plain_difference(moved, clean, quantity_);
      map[parts_[r].feature] += std::abs(effect) * parts_[r].weight;
      if (kept) remember(sign, effect, moved, clean, parts_[r]);
    }
    if (kept) first_.push_back(std::ssize(held_));
  }
  return maps;
}

at::Tensor ShallowEffects::logits() {
  if (logits_.defined()) return logits_;
  logits_ = at::empty({count(), 2}, inputs_.options());
  const std::int64_t most = chain_.block_rows(), n = inputs_.size(1);
  std::vector<float> kept(static_cast<std::size_t>(chain_.kept(false)));
  for (std::int64_t begin = 0; begin < count(); begin += most) {
    chain_.forward(inputs_.const_data_ptr<float>() + begin * n, std::min(most, count() - begin), false, kept.data(),
                   logits_.mutable_data_ptr<float>() + 2 * begin);
  }
  return logits_;
}

at::Tensor ShallowEffects::pullback(const at::Tensor& cotangent) {
  const at::Tensor along = cotangent.detach().to(at::kDouble).contiguous();
  at::Tensor gradient = at::empty_like(inputs_);
  const std::int64_t n = inputs_.size(1), units = rows_.units(), most = moves_.most();
  std::vector<float> weights(static_cast<std::size_t>(1 + most)), all(static_cast<std::size_t>(units)), own(all);
  for (std::int64_t b = 0; b < count(); ++b) {
    const double* direction = along.const_data_ptr<double>() + b * moves_.features;
    const float* slopes = slopes_.const_data_ptr<float>() + b * (1 + most) * units;
    float* out = gradient.mutable_data_ptr<float>() + b * n;
    const std::int64_t begin = first_[static_cast<std::size_t>(b)], end = first_[static_cast<std::size_t>(b) + 1];
    double clean = 0;
    for (std::int64_t r = begin; r < end; ++r) {
      const Held& one = held_[static_cast<std::size_t>(r)];
      weights[static_cast<std::size_t>(r - begin)] = static_cast<float>(direction[one.feature] * one.by_moved);
      clean += direction[one.feature] * one.by_clean;
    }
    std::fill(all.begin(), all.end(), 0.0f);
    const float clean_weight = static_cast<float>(clean);
    rows_.gather(&clean_weight, slopes, 1, all.data());
    // A group's columns are constants in rows where its category is another: what these rows say counts for the others alone.
    std::int64_t done = 0;
    const auto add = [&](std::int64_t rows, float* hidden) {
      rows_.gather(weights.data() + done, slopes + (1 + done) * units, rows, hidden);
      done += rows;
    };
    std::int64_t of_numbers = 0;
    while (begin + of_numbers < end && held_[static_cast<std::size_t>(begin + of_numbers)].category < 0) ++of_numbers;
    add(of_numbers, all.data());
    std::vector<std::vector<float>>& groups = group_hidden_;
    groups.resize(moves_.categories.size());
    for (std::size_t c = 0; c < moves_.categories.size(); ++c) {
      groups[c].assign(static_cast<std::size_t>(units), 0.0f);
      add(std::ssize(moves_.categories[c].columns) - 1, groups[c].data());
      for (std::size_t u = 0; u < groups[c].size(); ++u) all[u] += groups[c][u];
    }
    for (std::int64_t column = 0; column < n; ++column) out[column] = rows_.to_input(all.data(), column);
    for (std::size_t c = 0; c < moves_.categories.size(); ++c) {
      for (std::size_t u = 0; u < own.size(); ++u) own[u] = all[u] - groups[c][u];
      for (const std::int64_t column : moves_.categories[c].columns) out[column] = rows_.to_input(own.data(), column);
    }
  }
  return gradient;
}

void ShallowEffects::read_changes(const float* row) {
  changes_.clear();
  ends_.clear();
  parts_.clear();
  for_each_change(
      moves_, row,
      [&](const Number& number, double move, double weight) {
        changes_.push_back({number.column, static_cast<float>(move)});
        ends_.push_back(std::ssize(changes_));
        parts_.push_back({number.feature, -1, weight});
      },
      [&](const Category& category, std::int64_t level, double weight) {
        for (const std::int64_t column : category.columns) {
          const float by = (column == level ? 1.0f : 0.0f) - row[column];
          if (by != 0) changes_.push_back({column, by});
        }
        ends_.push_back(std::ssize(changes_));
        parts_.push_back({category.feature, category.feature, weight});
      });
}

void ShallowEffects::remember(double sign, double effect, double moved, double clean, const Part& part) {
  const double turned = effect > 0 ? sign * part.weight : effect < 0 ? -sign * part.weight : 0;
  held_.push_back({part.feature, part.category, turned * slope_at(moved, quantity_), -turned * slope_at(clean, quantity_)});
}

}  // namespace holdfast::explain::valid_effect
