#include "holdfast/core/rank_place.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include "holdfast/core/error.h"

namespace holdfast {
namespace {

constexpr int kLastPort = 65535;
// Slurm names no port: one by the job's number, above those that services have.
constexpr int kFirstSlurmPort = 20000, kSlurmPorts = 12000;

// Variables as text; empty counts as not set.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = environment_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  bool has(const char* name) const { return text(name).has_value(); }
  // The whole number of a variable in [low, high].
  int number(const char* name, int low, int high) const {
    const std::string value = text(name).value_or("");
    int parsed = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (status != std::errc() || end != value.data() + value.size() || parsed < low || parsed > high)
      usage_error("{}={}: must be a whole number of {} to {}", name, value, low, high);
    return parsed;
  }
  int number_or(const char* name, int otherwise) const {
    return has(name) ? number(name, 0, std::numeric_limits<int>::max()) : otherwise;
  }

 private:
  const Environment& environment_;
};

constexpr int kMostRanks = 1 << 20;

void read_rank(const Variables& variables, const char* rank, const char* size, RankPlace& place) {
  if (!variables.has(rank)) usage_error("{} is set, but {} is not: start all ranks with torchrun or srun", size, rank);
  if (!variables.has(size)) usage_error("{} is set, but {} is not: start all ranks with torchrun or srun", rank, size);
  place.size = variables.number(size, 1, kMostRanks);
  place.rank = variables.number(rank, 0, kMostRanks);
  if (place.rank >= place.size)
    usage_error("{}={} is beyond the {} ranks of {}: ranks count from 0", rank, place.rank, place.size, size);
}

RankPlace place_of_torchrun(const Variables& variables) {
  RankPlace place;
  read_rank(variables, "RANK", "WORLD_SIZE", place);
  if (place.size == 1) return place;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (!variables.has(name))
      usage_error("{} is not set, so the {} ranks cannot meet: start them with torchrun", name, place.size);
  }
  place.host = *variables.text("MASTER_ADDR");
  place.port = variables.number("MASTER_PORT", 1, kLastPort);
  place.local_rank = variables.number_or("LOCAL_RANK", 0);
  place.local_size = std::max(1, variables.number_or("LOCAL_WORLD_SIZE", 1));
  place.is_hosted = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.attempt = variables.number_or("TORCHELASTIC_RESTART_COUNT", 0);
  place.group = fmt::format("{}/{}/{}", variables.text("TORCHELASTIC_RUN_ID").value_or("none"), place.attempt, place.size);
  return place;
}

// "2(x3),1": tasks on each node. The machines of one job are taken to be alike.
int tasks_on_a_node(const std::string& text) {
  int tasks = 1;
  std::from_chars(text.data(), text.data() + text.size(), tasks);
  return std::max(1, tasks);
}

// A batch script has Slurm's variables too, without a step: what it starts itself is a single process.
RankPlace place_of_slurm(const Variables& variables) {
  RankPlace place;
  if (!variables.has("SLURM_STEP_ID") || !variables.has("SLURM_PROCID")) return place;
  const bool of_step = variables.has("SLURM_STEP_NUM_TASKS");
  read_rank(variables, "SLURM_PROCID", of_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", place);
  if (place.size == 1) return place;
  const std::string nodes =
      variables.text("SLURM_STEP_NODELIST").value_or(variables.text("SLURM_JOB_NODELIST").value_or(std::string()));
  place.host = variables.text("MASTER_ADDR").value_or(first_host(nodes));
  if (place.host.empty())
    usage_error("SLURM_JOB_NODELIST is not set, so the {} ranks cannot meet: set MASTER_ADDR to the host of rank 0", place.size);
  const int job = variables.number_or("SLURM_JOB_ID", 0), step = variables.number_or("SLURM_STEP_ID", 0);
  place.port = variables.has("MASTER_PORT") ? variables.number("MASTER_PORT", 1, kLastPort)
                                            : kFirstSlurmPort + (job % kSlurmPorts + step % kSlurmPorts) % kSlurmPorts;
  place.local_rank = variables.number_or("SLURM_LOCALID", 0);
  place.local_size = tasks_on_a_node(variables.text("SLURM_STEP_TASKS_PER_NODE").value_or("1"));
  place.attempt = variables.number_or("SLURM_RESTART_COUNT", 0);
  place.group = fmt::format("{}.{}/{}/{}", job, step, place.attempt, place.size);
  return place;
}

}  // namespace

std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  const std::string name = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return name;
  return name + list.substr(end + 1, list.find_first_of("-,]", end + 1) - end - 1);
}

int gpu_of(const std::string& device, const RankPlace& place, int gpus) {
  const std::string prefix = "cuda";
  const bool is_gpu = device.starts_with(prefix) && (device.size() == prefix.size() || device[prefix.size()] == ':');
  if (!is_gpu) usage_error("--device {}: must be cpu, cuda or cuda:N", device);
  if (gpus == 0) usage_error("--device {}: no CUDA device is available to this build of torch", device);
  if (device == prefix) return place.local_rank % gpus;
  const char* number = device.data() + prefix.size() + 1;
  const char* end = device.data() + device.size();
  int gpu = -1;
  const auto [stopped, status] = std::from_chars(number, end, gpu);
  if (status != std::errc() || stopped != end || gpu < 0 || gpu >= gpus)
    usage_error("--device {}: there are {} GPUs, cuda:0 to cuda:{}", device, gpus, gpus - 1);
  return gpu;
}

RankPlace rank_place(const Environment& environment) {
  const Variables variables(environment);
  if (variables.has("RANK") || variables.has("WORLD_SIZE")) return place_of_torchrun(variables);
  return place_of_slurm(variables);
}

RankPlace rank_place() {
  return rank_place([](const char* name) { return std::getenv(name); });
}

}  // namespace holdfast
