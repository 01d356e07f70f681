// What IG-NORM and IG-SUM-NORM share: the size of the integrated gradients of the loss along the line from a sample x to x'.
//     R = || (x' - x)/m * sum_{k=1..m} grad_z CE(z_k) ||_1          z_k = x + (k/m) (x' - x)
// Chen, Wu, Rastogi, Liang, Jha, "Robust Attribution Regularization", NeurIPS 2019.
//
// All points of all samples go through the network together, in blocks of whole steps: z_m is x' itself, so its logits, and with
// `with_start` those of x, come with the penalty and cost no pass of their own. Blocks are of a size that keeps a processor's
// cache (batch_rows.h). Their graphs are held while all of them fit `memory`; beyond that all but the last block's are dropped
// and made again, block by block, when the gradient is asked for: the same numbers for half as much work again.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/train/objective.h"
#include "inner_maximum.h"

namespace holdfast::train {

struct PathValues {
  at::Tensor penalty;       // R, [B]
  at::Tensor end_logits;    // at x', [B, classes]
  at::Tensor start_logits;  // at x; undefined unless asked for
};

class Path {
 public:
  struct Settings {
    std::int64_t steps = 50;                      // m
    std::int64_t memory = std::int64_t{2} << 30;  // bytes that the graphs of the blocks may take together
    bool with_start = false;
  };

  // From the batch's samples. The trainee must outlive it unless it is a network.
  Path(Trainee& trainee, const TrainBatch& batch, Settings settings);
  // To `moved`, [B, sample...]: differentiable by it where it requires gradients, and by the parameters.
  PathValues to(const at::Tensor& moved) const;

  // Points first .. first + count - 1 of the line; 0 is x and m is x'.
  struct Block {
    std::int64_t first = 0, count = 0;
  };
  struct Traced {
    at::Tensor gradients;  // sum over the block's points but x, [B, sample...]
    at::Tensor logits;     // [B, count, classes]
  };
  Traced trace(const at::Tensor& moved, const Block& block, bool create_graph) const;

 private:
  std::function<at::Tensor(const at::Tensor&)> logits_;
  at::Tensor start_, labels_;
  std::vector<at::Tensor> parameters_;  // trainable ones, of a network
  Settings settings_;
  std::vector<Block> blocks_;
  bool held_ = true;
};

// `path_steps`, `inner_path_steps` and `memory` of an objective with a path penalty.
std::vector<OptionSpec> path_options();

// What ig_norm and ig_sum_norm share: their options, their terms, and the settings of the two paths, that of the inner
// maximisation and that of the loss.
class PathObjective : public Objective {
 public:
  // The penalty's weight, the inner maximisation's options and the paths'.
  static std::vector<OptionSpec> options_with(OptionSpec weight);

  std::vector<Term> terms(double progress) const final;  // ce, penalty, robust_accuracy

 protected:
  // `weights`: see Objective.
  PathObjective(const Options& options, const std::vector<std::string>& weights);

  const double weight_;
  const InnerMaximum inner_;
  const Path::Settings inner_path_, path_;
};

}  // namespace holdfast::train
