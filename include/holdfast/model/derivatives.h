// Kernels that can be differentiated twice.
//
// Torch's fused attention has a first derivative and no second one; its math kernel has both and takes a little longer. cuDNN's
// recurrent kernels have no derivative at all in evaluation mode. So whoever takes second derivatives says so, and models choose.
#pragma once

namespace holdfast::model {

// While one lives, models that run on this thread take kernels that can be differentiated twice. A model that is run by several
// threads at once computes each call by what its own thread says, so results do not depend on what the others do.
class TwiceDifferentiable {
 public:
  explicit TwiceDifferentiable(bool on = true);
  ~TwiceDifferentiable();
  TwiceDifferentiable(const TwiceDifferentiable&) = delete;
  TwiceDifferentiable& operator=(const TwiceDifferentiable&) = delete;

  static bool is_on();

 private:
  bool before_;
};

// While one lives, torch's attention takes the math kernel in every thread, and afterwards again what it took before the first of
// them. It is for models whose operations cannot be chosen one by one: Python's.
class MathAttention {
 public:
  explicit MathAttention(bool on = true);
  ~MathAttention();
  MathAttention(const MathAttention&) = delete;
  MathAttention& operator=(const MathAttention&) = delete;

 private:
  bool on_;
};

// The same for cuDNN, which is left out while one lives.
class WithoutCudnn {
 public:
  explicit WithoutCudnn(bool on = true);
  ~WithoutCudnn();
  WithoutCudnn(const WithoutCudnn&) = delete;
  WithoutCudnn& operator=(const WithoutCudnn&) = delete;

 private:
  bool on_;
};

}  // namespace holdfast::model
