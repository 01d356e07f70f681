#include "rank_sum.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <torch/cuda.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "holdfast/core/interrupt.h"
#include "holdfast/core/torch.h"

#ifdef HOLDFAST_GLOO
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef HOLDFAST_NCCL
#ifndef USE_C10D_NCCL
#define USE_C10D_NCCL
#endif
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace holdfast {

RankRows rows_of_rank(std::int64_t rows, int rank, int size) {
  HOLDFAST_CHECK(rows > 0 && rank >= 0 && rank < size);
  const std::int64_t first = rows * rank / size, end = rows * (rank + 1) / size;
  return end > first ? RankRows{first, end - first, true} : RankRows{0, 1, false};
}

#if defined(HOLDFAST_GLOO) || defined(HOLDFAST_NCCL)
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::microseconds kBusyWait{2000}, kPause{100};
constexpr std::chrono::seconds kPatienceForReasons{5};

#ifdef HOLDFAST_GLOO
// The address of this machine by which rank 0 is reached, so that other machines reach it by the same network. Gloo's own choice
// is the host's name, which on many machines stands for the loopback.
std::string own_address(const RankPlace& place) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found) != 0) return "127.0.0.1";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, &::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int handle = ::socket(at->ai_family, SOCK_DGRAM, 0);
    if (handle < 0) continue;
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    std::array<char, NI_MAXHOST> text{};
    const bool known =
        ::connect(handle, at->ai_addr, at->ai_addrlen) == 0 &&
        ::getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
    ::close(handle);
    if (known) return text.data();
  }
  return "127.0.0.1";
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const RankPlace& place, const c10::intrusive_ptr<c10d::Store>& store) {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address(place)));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>("gloo", store), place.rank,
                                                     place.size, options);
}
#endif

#ifdef HOLDFAST_NCCL
c10::intrusive_ptr<c10d::Backend> make_nccl(const RankPlace& place, const c10::intrusive_ptr<c10d::Store>& store) {
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>("nccl", store), place.rank,
                                                     place.size);
}
#endif

class GroupSum final : public RankSum {
 public:
  // `through_cpu`: the group takes tensors of the CPU only.
  GroupSum(Communicator& ranks, c10::intrusive_ptr<c10d::Backend> group, bool through_cpu)
      : ranks_(ranks), group_(std::move(group)), through_cpu_(through_cpu) {}

  // A group that is left while others still add cannot be closed: it would wait for them. The process is about to end then.
  ~GroupSum() override {
    if (is_broken_) (void)group_.release();
  }

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }

  void add_up(at::Tensor& tensor) override {
    std::vector<at::Tensor> sums{through_cpu_ ? tensor.cpu() : tensor};
    try {
      wait_for(*group_->allreduce(sums));
    } catch (const Error&) {
      is_broken_ = true;
      throw;
    } catch (const std::exception& error) {
      is_broken_ = true;
      explain(error.what());
    }
    if (through_cpu_ && !tensor.is_cpu()) tensor.copy_(sums[0]);
  }

 private:
  // Sums on a GPU are ordered by its stream; those on the CPU are waited for here, so that Ctrl-C is seen.
  void wait_for(c10d::Work& work) const {
    const auto start = steady_clock::now();
    while (through_cpu_ && !work.isCompleted()) {
      throw_if_interrupted();
      if (steady_clock::now() - start < kBusyWait)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kPause);
    }
    work.wait();
  }

  // A rank that ends breaks the connections of the others. What it says reaches them a little later.
  [[noreturn]] void explain(const std::string& what) const {
    const auto deadline = steady_clock::now() + kPatienceForReasons;
    while (steady_clock::now() < deadline) {
      throw_if_interrupted();
      ranks_.throw_if_another_failed();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    failure("rank {} has lost another rank: {}", ranks_.rank(), what.substr(0, what.find('\n')));
  }

  Communicator& ranks_;
  c10::intrusive_ptr<c10d::Backend> group_;
  const bool through_cpu_;
  bool is_broken_ = false;
};

}  // namespace
#endif

std::unique_ptr<RankSum> make_rank_sum(Communicator& ranks, const c10::intrusive_ptr<c10d::Store>& store, c10::Device device) {
  bool by_nccl = false;
#ifdef HOLDFAST_NCCL
  // NCCL refuses two ranks on one GPU.
  by_nccl = device.is_cuda() && ranks.place().local_size <= static_cast<int>(torch::cuda::device_count());
#endif
  ranks.agree_on("way to add up", by_nccl ? "NCCL" : (device.is_cuda() ? "Gloo, from GPUs" : "Gloo"),
                 "give all of them the same --device, and the same number of GPUs");
#ifdef HOLDFAST_NCCL
  if (by_nccl) return std::make_unique<GroupSum>(ranks, make_nccl(ranks.place(), store), false);
#endif
#ifdef HOLDFAST_GLOO
  return std::make_unique<GroupSum>(ranks, make_gloo(ranks.place(), store), true);
#else
  (void)store;
  usage_error("this program was built without Gloo, by which {} ranks add up; install libgloo-dev and build it again",
              ranks.size());
#endif
}

}  // namespace holdfast
