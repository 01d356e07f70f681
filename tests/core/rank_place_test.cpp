#include "holdfast/core/rank_place.h"

#include <map>

#include <gtest/gtest.h>

#include "support/errors.h"

namespace holdfast {
namespace {

RankPlace place_in(const std::map<std::string, std::string>& variables) {
  return rank_place([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const std::map<std::string, std::string> kTorchrun{{"RANK", "2"},
                                                   {"WORLD_SIZE", "4"},
                                                   {"LOCAL_WORLD_SIZE", "2"},
                                                   {"MASTER_ADDR", "one"},
                                                   {"MASTER_PORT", "29500"},
                                                   {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                   {"TORCHELASTIC_RUN_ID", "mine"},
                                                   {"TORCHELASTIC_RESTART_COUNT", "1"}};
const std::map<std::string, std::string> kSrun{{"SLURM_STEP_ID", "0"},
                                               {"SLURM_PROCID", "3"},
                                               {"SLURM_NTASKS", "4"},
                                               {"SLURM_JOB_ID", "12345"},
                                               {"SLURM_JOB_NODELIST", "gpu[07-08]"},
                                               {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};

std::map<std::string, std::string> with(std::map<std::string, std::string> variables, const std::string& name,
                                        const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(RankPlace, NothingSetIsASingleProcess) {
  const RankPlace place = place_in({});
  EXPECT_EQ(place.size, 1);
  EXPECT_FALSE(place.is_one_of_many());
}

TEST(RankPlace, TorchrunSaysRankHostAndStart) {
  const RankPlace place = place_in(kTorchrun);
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.size, 4);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.host, "one");
  EXPECT_EQ(place.port, 29500);
  EXPECT_TRUE(place.is_hosted);
  EXPECT_EQ(place.attempt, 1);
}

TEST(RankPlace, AGroupThatIsStartedAgainIsAnotherGroup) {
  EXPECT_NE(place_in(kTorchrun).group, place_in(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "2")).group);
  EXPECT_NE(place_in(kTorchrun).group, place_in(with(kTorchrun, "TORCHELASTIC_RUN_ID", "other")).group);
  EXPECT_EQ(place_in(kTorchrun).group, place_in(with(kTorchrun, "RANK", "0")).group);
}

TEST(RankPlace, SrunSaysTheSameInItsOwnWords) {
  const RankPlace place = place_in(kSrun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.size, 4);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.host, "gpu07");
  EXPECT_GT(place.port, 1023);
  EXPECT_FALSE(place.is_hosted);
  EXPECT_EQ(place.port, place_in(with(kSrun, "SLURM_PROCID", "0")).port);
}

TEST(RankPlace, WhatABatchScriptStartsItselfIsASingleProcess) {
  auto batch = kSrun;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(place_in(batch).size, 1);
}

TEST(RankPlace, TorchrunInsideOfSlurmCounts) {
  auto both = kTorchrun;
  both.insert(kSrun.begin(), kSrun.end());
  EXPECT_EQ(place_in(both).rank, 2);
}

TEST(RankPlace, RefusesWhatDoesNotFitTogether) {
  EXPECT_ERROR(place_in(with(kTorchrun, "RANK", "4")), kUsage, "RANK=4 is beyond the 4 ranks");
  EXPECT_ERROR(place_in(with(kTorchrun, "RANK", "-1")), kUsage, "RANK=-1");
  EXPECT_ERROR(place_in(with(kTorchrun, "WORLD_SIZE", "many")), kUsage, "WORLD_SIZE=many");
  EXPECT_ERROR(place_in(with(kTorchrun, "MASTER_PORT", "70000")), kUsage, "MASTER_PORT=70000");
  EXPECT_ERROR(place_in({{"WORLD_SIZE", "4"}}), kUsage, "RANK is not");
  EXPECT_ERROR(place_in({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), kUsage, "MASTER_ADDR is not set");
}

TEST(GpuOf, ReadsTheDevice) {
  EXPECT_EQ(gpu_of("cuda", {}, 4), 0);
  EXPECT_EQ(gpu_of("cuda:3", {}, 4), 3);
  EXPECT_ERROR(gpu_of("cuda:4", {}, 4), kUsage, "there are 4 GPUs, cuda:0 to cuda:3");
  for (const char* wrong : {"cuda:", "cuda:-1", "cuda:1x", "cuda: 1"})
    EXPECT_ERROR(gpu_of(wrong, {}, 4), kUsage, "there are 4 GPUs");
  for (const char* wrong : {"", "gpu", "cuda1", "cud"}) EXPECT_ERROR(gpu_of(wrong, {}, 4), kUsage, "must be cpu, cuda or cuda:N");
  EXPECT_ERROR(gpu_of("cuda", {}, 0), kUsage, "no CUDA device");
}

TEST(GpuOf, RanksOfAMachineTakeOneEach) {
  const auto of = [](int local_rank, int gpus) { return gpu_of("cuda", {.local_rank = local_rank, .local_size = 4}, gpus); };
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(of(rank, 4), rank);
    EXPECT_EQ(of(rank, 8), rank);
    EXPECT_EQ(of(rank, 2), rank % 2);
    EXPECT_EQ(of(rank, 1), 0);
  }
  EXPECT_EQ(gpu_of("cuda:1", {.local_rank = 3, .local_size = 4}, 2), 1) << "what is named is taken";
}

TEST(FirstHost, ReadsSlurmsLists) {
  EXPECT_EQ(first_host("one"), "one");
  EXPECT_EQ(first_host("one,two"), "one");
  EXPECT_EQ(first_host("node[07-09,12],other"), "node07");
  EXPECT_EQ(first_host("node[3]"), "node3");
}

}  // namespace
}  // namespace holdfast
