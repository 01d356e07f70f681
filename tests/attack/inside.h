// Whether an attack's result is what the contract promises, found out with plain loops over doubles: no code of the attacks,
// of the threat model or of the verifier, and no torch beyond reading numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/attack/attack.h"
#include "holdfast/core/torch.h"

namespace holdfast::testing_support {
using namespace attack;

using Rows = std::vector<std::vector<double>>;

inline Rows to_rows(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().cpu().to(at::kDouble).flatten(1).contiguous();
  Rows rows;
  for (std::int64_t b = 0; b < plain.size(0); ++b) {
    const double* row = plain.const_data_ptr<double>() + b * plain.size(1);
    rows.emplace_back(row, row + plain.size(1));
  }
  return rows;
}

// max(W x + b, 0), then V h + c: the network of mlp_model with ReLU.
inline std::vector<double> plain_logits(const Network& network, const std::vector<double>& x) {
  std::vector<double> values = x;
  for (const Node& node : network.nodes()) {
    if (const auto* linear = std::get_if<op::Linear>(&node.operation)) {
      const Rows weight = to_rows(linear->weight), bias = to_rows(linear->bias.unsqueeze(0));
      std::vector<double> out = bias[0];
      for (std::size_t i = 0; i < out.size(); ++i) {
        for (std::size_t j = 0; j < values.size(); ++j) out[i] += weight[i][j] * values[j];
      }
      values = out;
    } else if (std::holds_alternative<op::Activation>(node.operation)) {
      for (double& value : values) value = std::max(value, 0.0);
    }
  }
  return values;
}

inline double size_of(Norm norm, const std::vector<double>& move) {
  double sum = 0, squares = 0, largest = 0;
  for (const double element : move) {
    sum += std::abs(element);
    squares += element * element;
    largest = std::max(largest, std::abs(element));
  }
  return norm == Norm::kL1 ? sum : norm == Norm::kLinf ? largest : std::sqrt(squares);
}

// What is wrong with a row, or nothing. `moved_at_all` is set when the row differs from the clean one.
inline std::string wrong_with(const std::vector<double>& clean, const std::vector<double>& moved, const ThreatModel& threat,
                              const Schema& schema, const Network& network, bool& moved_at_all) {
  std::vector<double> move(clean.size());
  for (std::size_t i = 0; i < clean.size(); ++i) {
    move[i] = moved[i] - clean[i];
    moved_at_all = moved_at_all || move[i] != 0;
    if (!std::isfinite(moved[i])) return "not finite";
    if (threat.box && (moved[i] < threat.box->first || moved[i] > threat.box->second)) return "outside the box";
    if (!schema.features.empty() && schema.features[i].frozen && moved[i] != clean[i]) return "a frozen feature moved";
  }
  const double size = size_of(threat.norm, move);
  if (size > threat.epsilon * (1 + 1e-6)) return "outside the ball: " + std::to_string(size);
  const std::vector<double> before = plain_logits(network, clean), after = plain_logits(network, moved);
  const auto top = [](const std::vector<double>& logits) {
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  };
  if (top(before) != top(after)) return "another class";
  return "";
}

}  // namespace holdfast::testing_support
