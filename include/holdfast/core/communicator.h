// Several processes that do one piece of work together, its ranks, started by torchrun or by Slurm's srun:
//
//     torchrun --nproc-per-node 4 --no-python holdfast audit ...
//
// Every rank runs the same program in the same order. What there is to do is handed out by counters that all ranks see, so a fast
// rank takes more. Results lie in the shared run folder, or are published here where they are small. Rank 0 leads: it claims the
// folder, joins the results, writes and prints. The ranks meet in torch's own TCPStore.
//
// Names are those of one start: ranks that torchrun starts again see nothing of what an earlier start has counted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "holdfast/core/error.h"
#include "holdfast/core/rank_place.h"
#include "holdfast/core/rank_sum.h"

namespace c10 {
struct Device;
}

namespace holdfast {

// Another rank has failed and has said why: this one ends with the same exit code and says nothing.
class OtherRankFailed : public Error {
 public:
  OtherRankFailed(const std::string& message, int exit_code) : Error(ErrorKind::kFailure, message), code_(exit_code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// Thread-safe.
class Communicator {
 public:
  // Joins the other ranks. Throws kUsage when they cannot be reached within HOLDFAST_JOIN_SECONDS (300).
  explicit Communicator(const RankPlace& place);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  bool leads() const { return place_.rank == 0; }
  const RankPlace& place() const { return place_; }

  // The next number of a queue: 0, 1, 2, ...; each is given to one rank.
  std::int64_t take(const std::string& queue);
  // Adds to a counter that starts at 0, and gives its new value.
  std::int64_t add(const std::string& counter, std::int64_t amount);
  // Waits until a counter has reached a value; `seen` hears of every value that is met.
  void wait_for(const std::string& counter, std::int64_t value, const std::function<void(std::int64_t)>& seen = {});

  // Says something to all ranks, once for each name.
  void publish(const std::string& name, const std::string& text);
  // What was published; waits for it. Waiting throws OtherRankFailed when a rank has failed, and kInterrupted.
  std::string read(const std::string& name);

  // Throws kUsage on every rank unless `fact` is the same text on all of them. The message names `what` and two ranks that
  // differ.
  void agree_on(const std::string& what, const std::string& fact, const std::string& advice);

  // Sums of tensors over all ranks: by Gloo on the CPU; by NCCL on GPUs of their own, where the program was built with it, else
  // through the CPU. Every rank calls this in the same order. Throws kUsage where the program was built without Gloo.
  std::unique_ptr<RankSum> sums(const c10::Device& device);

  // Throws OtherRankFailed when a rank has failed: for loops that wait for its files.
  void throw_if_another_failed();
  // Tells the others that this rank has failed; true for the first to fail, whose sentence is the one to show. Where rank 0 keeps
  // the store it waits a little until the others know.
  bool fail(const std::string& message, int exit_code) noexcept;
  // The end of every rank: gives rank 0's exit code. Rank 0 waits a little for the others, whom its store serves.
  int leave(int exit_code);

 private:
  struct Store;
  bool has(const std::string& name);
  void wait_until(const std::function<bool()>& holds);
  void wait_for_leavers(int seconds);

  const RankPlace place_;
  std::unique_ptr<Store> store_;
};

// Whether this process prints and writes: a single one, which has no ranks, or rank 0.
inline bool leads(const Communicator* ranks) {
  return ranks == nullptr || ranks->leads();
}

}  // namespace holdfast
