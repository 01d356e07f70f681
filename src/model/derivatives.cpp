#include "holdfast/model/derivatives.h"

#include <mutex>

#include "holdfast/core/torch.h"

namespace holdfast::model {
namespace derivatives {

thread_local bool twice = false;

// A setting of torch's that all threads share: changed for the first of several scopes and restored after the last.
class SharedSetting {
 public:
  template <class Change>
  void enter(const Change& change) {
    const std::lock_guard lock(mutex_);
    if (scopes_++ == 0) change();
  }
  template <class Restore>
  void leave(const Restore& restore) {
    const std::lock_guard lock(mutex_);
    if (--scopes_ == 0) restore();
  }

 private:
  std::mutex mutex_;
  int scopes_ = 0;
};

SharedSetting attention, cudnn;
bool flash = true, memory_efficient = true, cudnn_attention = true, math = true, with_cudnn = true;  // as they were

}  // namespace derivatives

using namespace derivatives;

TwiceDifferentiable::TwiceDifferentiable(bool on) : before_(twice) {
  twice = twice || on;
}

TwiceDifferentiable::~TwiceDifferentiable() {
  twice = before_;
}

bool TwiceDifferentiable::is_on() {
  return twice;
}

MathAttention::MathAttention(bool on) : on_(on) {
  if (!on_) return;
  attention.enter([] {
    at::Context& context = at::globalContext();
    flash = context.userEnabledFlashSDP();
    memory_efficient = context.userEnabledMemEfficientSDP();
    cudnn_attention = context.userEnabledCuDNNSDP();
    math = context.userEnabledMathSDP();
    context.setSDPUseFlash(false);
    context.setSDPUseMemEfficient(false);
    context.setSDPUseCuDNN(false);
    context.setSDPUseMath(true);
  });
}

MathAttention::~MathAttention() {
  if (!on_) return;
  attention.leave([] {
    at::Context& context = at::globalContext();
    context.setSDPUseFlash(flash);
    context.setSDPUseMemEfficient(memory_efficient);
    context.setSDPUseCuDNN(cudnn_attention);
    context.setSDPUseMath(math);
  });
}

WithoutCudnn::WithoutCudnn(bool on) : on_(on) {
  if (!on_) return;
  cudnn.enter([] {
    with_cudnn = at::globalContext().userEnabledCuDNN();
    at::globalContext().setUserEnabledCuDNN(false);
  });
}

WithoutCudnn::~WithoutCudnn() {
  if (on_) cudnn.leave([] { at::globalContext().setUserEnabledCuDNN(with_cudnn); });
}

}  // namespace holdfast::model
