#include "holdfast/core/device_graph.h"

#include <cstdlib>

#include "holdfast/core/log.h"
#include "holdfast/core/torch.h"

#ifdef HOLDFAST_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace holdfast {
namespace {

// On the CPU there is nothing to record: the work is done anew.
class RepeatedWork final : public DeviceGraph {
 public:
  explicit RepeatedWork(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

std::unique_ptr<DeviceGraph> repeated_on_cpu(std::function<void()> work) {
  for (int i = 0; i < 2; ++i) work();
  return std::make_unique<RepeatedWork>(std::move(work));
}

}  // namespace

#ifdef HOLDFAST_CUDA
namespace {

// Makes `to` wait for what was asked of `from` before.
void wait_for(const c10::cuda::CUDAStream& from, const c10::cuda::CUDAStream& to) {
  at::cuda::CUDAEvent event;
  event.record(from);
  event.block(to);
}

class CudaGraph final : public DeviceGraph {
 public:
  void replay() override { graph.replay(); }
  at::cuda::CUDAGraph graph;
};

std::unique_ptr<DeviceGraph> record_on_cuda(const std::function<void()>& work) {
  const c10::cuda::CUDAStream outside = c10::cuda::getCurrentCUDAStream(), inside = c10::cuda::getStreamFromPool();
  auto result = std::make_unique<CudaGraph>();
  wait_for(outside, inside);
  bool recorded = false;
  {
    const c10::cuda::CUDAStreamGuard guard(inside);
    for (int i = 0; i < 2; ++i) work();
    inside.synchronize();
    try {
      result->graph.capture_begin();
      work();
      result->graph.capture_end();
      recorded = true;
    } catch (const c10::Error& error) {
      log_warning("steps are not recorded on this GPU, which makes them slower: {}", error.what_without_backtrace());
      try {
        result->graph.capture_end();
      } catch (const c10::Error&) {  // it was broken off already
      }
      (void)cudaGetLastError();
    }
  }
  wait_for(inside, outside);
  return recorded ? std::move(result) : nullptr;
}

}  // namespace

bool DeviceGraph::is_available(const at::Tensor& tensor) {
  return tensor.is_cpu() || (tensor.is_cuda() && std::getenv("HOLDFAST_NO_GRAPHS") == nullptr);
}

std::unique_ptr<DeviceGraph> DeviceGraph::record(const at::Tensor& tensor, std::function<void()> work) {
  if (tensor.is_cpu()) return repeated_on_cpu(std::move(work));
  const c10::cuda::CUDAGuard on_its_device(tensor.device());
  return record_on_cuda(work);
}

#else

bool DeviceGraph::is_available(const at::Tensor& tensor) {
  return tensor.is_cpu();
}

std::unique_ptr<DeviceGraph> DeviceGraph::record(const at::Tensor& tensor, std::function<void()> work) {
  return tensor.is_cpu() ? repeated_on_cpu(std::move(work)) : nullptr;
}

#endif

}  // namespace holdfast
