// What a model gives, and how it becomes logits.
//
//     kind            outputs of B samples          logits
//     logits          [B, classes], two or more     as they are
//     logit           [B] or [B, 1], z              [-z/2, z/2]: class 1 where z > 0, with probability sigmoid(z)
//     probabilities   [B, classes], two or more     log p
//     probability     [B] or [B, 1], p of class 1   [log(1 - p), log p]
//     value           [B] or [B, 1], y              [y]: nothing is predicted but the number itself
//
// A model of one logit column gives a value (regression): the number is explained, and "the prediction stays" means that it
// moves by no more than the threat's tolerance.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "holdfast/core/stages.h"

namespace holdfast::model {

class Model;

enum class OutputKind { kAuto, kLogits, kLogit, kProbabilities, kProbability, kValue };
const std::vector<std::string>& output_kinds();         // "auto", "logits", ...
OutputKind parse_output_kind(const std::string& text);  // throws kUsage
std::string output_kind_name(OutputKind kind);

// Probabilities below this count as this: their logarithm's second derivative would not fit a float.
inline constexpr double kLeastProbability = 1e-18;

// [B, classes], differentiable by the outputs any number of times. `kind` is not auto, and the outputs fit it.
at::Tensor logits_from(const at::Tensor& outputs, OutputKind kind);

// Empty where outputs of this shape fit the kind (auto: any kind); otherwise the end of a sentence about the model that gave
// them.
std::string wrong_outputs(at::IntArrayRef shape, std::int64_t samples, OutputKind kind = OutputKind::kLogits);

// Samples whose outputs are looked at before it is said what they are.
inline constexpr std::int64_t kSamplesSeen = 32;

// What outputs [B, ...] of several samples are when nobody said it: probabilities where no row has a negative number and every
// row sums to 1; one number is a logit. Throws kInput where one number lies in [0, 1] for every sample: it may be a probability.
OutputKind guess_output_kind(const at::Tensor& outputs, const std::string& model);

// "one logit, positive for class 1": for `describe`, and for what is said when it was assumed.
std::string output_words(OutputKind kind);

// The model with logits in place of what it gives. What is not asked for is found out: from the model itself (output_kind()),
// else from what it gives for the first of these inputs; what had to be assumed is said in a warning. Throws kInput for outputs
// that do not fit.
std::shared_ptr<const Model> with_logits(std::shared_ptr<const Model> model, OutputKind asked, const at::Tensor& inputs);

// [B] double: the probability of each row's class; of a model that gives a value, the value.
at::Tensor class_scores(const at::Tensor& logits, const at::Tensor& classes);

}  // namespace holdfast::model
