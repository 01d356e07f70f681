#include "holdfast/core/tensor_memory.h"

#include <malloc.h>

#include <atomic>
#include <new>
#include <string>
#include <utility>

#include <c10/core/CPUAllocator.h>

namespace holdfast {
namespace tensor_memory_use {

std::atomic<std::int64_t> taken{0}, peak{0};
thread_local std::string shortage;  // why an allocation of this thread failed; empty: none did

c10::DeleterFnPtr free_as_before = nullptr;

// The size is asked of the allocator, so that nothing must be kept beside the memory.
void release(void* memory) {
  if (memory != nullptr) taken -= static_cast<std::int64_t>(malloc_usable_size(memory));
  free_as_before(memory);
}

void raise_peak(std::int64_t now) {
  std::int64_t known = peak;
  while (known < now && !peak.compare_exchange_weak(known, now)) {
  }
}

class LimitedAllocator final : public c10::Allocator {
 public:
  explicit LimitedAllocator(c10::Allocator& own) : own_(own) {}

  c10::DataPtr allocate(std::size_t size) override {
    const std::int64_t wanted = taken + static_cast<std::int64_t>(size);
    if (wanted > memory_limit()) {
      raise_peak(wanted);
      refuse(fmt::format("out of memory: {} more would make {}, but only {} may be taken (--memory)", in_words(size),
                         memory_in_words(wanted), memory_in_words(memory_limit())));
    }
    c10::DataPtr data;
    try {
      data = own_.allocate(size);
    } catch (const std::exception&) {
      refuse(fmt::format("out of memory: the system has no {} more", in_words(size)));
    }
    if (data.get() != nullptr) raise_peak(taken += static_cast<std::int64_t>(malloc_usable_size(data.get())));
    HOLDFAST_CHECK(data.compare_exchange_deleter(free_as_before, &release));
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }

 private:
  static std::string in_words(std::size_t size) { return memory_in_words(static_cast<std::int64_t>(size)); }
  [[noreturn]] static void refuse(std::string why) {
    shortage = std::move(why);
    throw OutOfMemory(shortage);
  }

  c10::Allocator& own_;
};

}  // namespace tensor_memory_use

void limit_tensor_memory(std::int64_t bytes) {
  set_memory_limit(bytes);
  if (tensor_memory_use::free_as_before != nullptr) return;
  c10::Allocator& own = *c10::GetCPUAllocator();
  tensor_memory_use::free_as_before = own.raw_deleter();
  static tensor_memory_use::LimitedAllocator& limited = *new tensor_memory_use::LimitedAllocator(own);
  c10::SetCPUAllocator(&limited, /*priority=*/1);
}

std::int64_t tensor_memory() {
  return tensor_memory_use::taken;
}
void reset_peak_tensor_memory() {
  tensor_memory_use::peak = tensor_memory_use::taken.load();
}
std::int64_t peak_tensor_memory() {
  return tensor_memory_use::peak;
}

void throw_if_out_of_memory(const std::exception& error) {
  if (!tensor_memory_use::shortage.empty()) throw OutOfMemory(std::exchange(tensor_memory_use::shortage, {}));
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) throw OutOfMemory("out of memory");
  const std::string text = error.what();
  const std::size_t cuda = text.find("CUDA out of memory");
  if (cuda != std::string::npos)
    throw OutOfMemory("out of memory on the device: " + text.substr(cuda, text.find('.', cuda) - cuda));
}

}  // namespace holdfast
