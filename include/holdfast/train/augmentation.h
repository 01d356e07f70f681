// Random changes of training images, drawn anew in every epoch: a network that sees each image in many places overfits less.
//
//     none
//     crop_flip(pad,flip)   the image is moved by up to `pad` pixels each way, what enters is its own mirror image at the border;
//                           every second image is flipped left to right
// What is drawn for a sample depends on (seed, epoch, sample) alone: not on the batch it is in, nor on threads or ranks.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "holdfast/core/registry.h"
#include "holdfast/core/stages.h"
#include "holdfast/data/schema.h"

namespace holdfast::train {

class Augmentation {
 public:
  virtual ~Augmentation() = default;
  // Throws kUsage where it cannot change such samples.
  virtual void check(const Schema& schema) const = 0;
  // `inputs` [B, ...] on any device, `ids` [B] on the CPU.
  virtual at::Tensor apply(const at::Tensor& inputs, const at::Tensor& ids, std::uint64_t seed, std::int64_t epoch) const = 0;
};

const Registry<Augmentation>& augmentations();

}  // namespace holdfast::train
