// Several trainings on one dataset, as fast as the machine allows.
//
// Trainings that differ in their seed, their starting weights and the weights of their objective's terms alone, on networks of
// linear layers and activations (linear, mlp), are trained as one stack: one batched matrix product in place of many small ones.
// Stacks and all other trainings run side by side on the threads. Every network sees the samples that it would see alone, in the
// same order, and ends with the weights that it would have alone up to rounding; draws of an objective are keyed by the first
// seed of a stack. Results do not depend on the number of threads.
//
// Nothing is written: a caller that wants to go on after an interruption keeps what is finished.
#pragma once

#include <string>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/train/trainer.h"

namespace holdfast::train {

// One result for each of `options`, in order; folder and threads of the options are not used.
std::vector<TrainResult> train_many(const Dataset& dataset, const std::vector<TrainOptions>& options, int threads = 0,
                                    const std::string& label = "train");

}  // namespace holdfast::train
