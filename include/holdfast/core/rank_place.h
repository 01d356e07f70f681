// Which of several processes this one is. torchrun and Slurm's srun say it in the environment.
#pragma once

#include <functional>
#include <string>

namespace holdfast {

// The processes of one job are its ranks: 0, 1, ... size - 1.
struct RankPlace {
  int rank = 0;
  int size = 1;        // 1: a single process, which needs none of the rest
  int local_rank = 0;  // among the ranks on this machine
  int local_size = 1;  // ranks on this machine, as far as it is known
  std::string host;    // where the ranks meet
  int port = 0;
  bool is_hosted = false;  // torchrun keeps the store; else rank 0 does
  int attempt = 0;         // how often torchrun has started the group again
  std::string group;       // the same for all ranks of one start, and no other start's

  bool is_one_of_many() const { return size > 1; }
};

// Gives a variable's value; null where it is not set.
using Environment = std::function<const char*(const char*)>;

// torchrun's RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; else those of a step that srun started (SLURM_STEP_ID, SLURM_PROCID,
// SLURM_NTASKS). Throws kUsage where they do not fit each other.
RankPlace rank_place(const Environment& environment);
RankPlace rank_place();  // of this process

// The GPU that --device names, of those that there are: "cuda:1" is the second one. "cuda" is the first, or a rank's own: the
// ranks of one machine take one each, in turn where there are fewer. Throws kUsage for one that is not there.
int gpu_of(const std::string& device, const RankPlace& place, int gpus);

// The first host of Slurm's list: "node[07-09,12],other" gives node07.
std::string first_host(const std::string& list);

}  // namespace holdfast
