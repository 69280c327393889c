#include "lockstep/state/placement.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::state {
namespace {

Placement place_on_cpu(const Environment& environment) { return place(environment, {.cpu = true}); }

TEST(STATE_001, ALocalRankWithADeviceIsAnAcceleratorProcess) {
  const Environment environment{{"LOCAL_RANK", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  const auto placement = place(environment, {.num_devices = 2});
  EXPECT_EQ(placement.type, DistributedType::multi_gpu);
  EXPECT_EQ(placement.backend, "nccl");
  EXPECT_EQ(place({{"LOCAL_RANK", "-1"}}, {.num_devices = 2}).type, DistributedType::no);
}

TEST(STATE_002, CpuWithALocalRankOrAWorldAboveOneIsMultiCpu) {
  EXPECT_EQ(place_on_cpu({}).type, DistributedType::no);
  EXPECT_EQ(place_on_cpu({{"WORLD_SIZE", "1"}}).type, DistributedType::no);
  EXPECT_EQ(place_on_cpu({{"LOCAL_RANK", "0"}}).type, DistributedType::multi_cpu);
  for (const char* size : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "WORLD_SIZE"}) {
    const auto placement = place_on_cpu({{size, "2"}, {"MASTER_ADDR", "127.0.0.1"}});
    EXPECT_EQ(placement.type, DistributedType::multi_cpu) << size;
    EXPECT_EQ(placement.backend, "gloo");
    EXPECT_EQ(placement.world, (World{0, 2}));
  }
}

TEST(STATE_002, SlurmCountsOnlyInAStepOfSeveralTasksWithoutAnotherLauncher) {
  Environment slurm{{"SLURM_PROCID", "1"},
                    {"SLURM_NTASKS", "2"},
                    {"SLURM_LOCALID", "1"},
                    {"SLURM_STEP_ID", "0"},
                    {"MASTER_ADDR", "10.0.0.1"}};
  EXPECT_EQ(place_on_cpu(slurm).world, (World{1, 2}));
  auto with_pmi = slurm;
  with_pmi.set("PMI_RANK", "0");
  EXPECT_EQ(place_on_cpu(with_pmi).type, DistributedType::no);
  auto no_step = slurm;
  no_step.unset("SLURM_STEP_ID");
  EXPECT_EQ(place_on_cpu(no_step).type, DistributedType::no);
  auto one_task = slurm;
  one_task.set("SLURM_NTASKS", "1");
  EXPECT_EQ(place_on_cpu(one_task).type, DistributedType::no);
}

TEST(STATE_003, EachValueIsTheFirstSetOfItsRow) {
  const auto open_mpi = place_on_cpu({{"OMPI_COMM_WORLD_RANK", "1"},
                                      {"OMPI_COMM_WORLD_SIZE", "2"},
                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(open_mpi.world, (World{1, 2}));
  EXPECT_EQ(open_mpi.local, (World{1, 2}));
  const auto both = place_on_cpu({{"RANK", "0"}, {"PMI_RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(both.world.rank, 0);
  const auto negative =
      place_on_cpu({{"RANK", "-1"}, {"PMI_RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(negative.world.rank, 1);
}

TEST(STATE_004, PortDefaultsAndAWorldBeyondThisMachineNeedsAnAddress) {
  EXPECT_EQ(place_on_cpu({{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}).rendezvous.port, 29500);
  try {
    place_on_cpu({{"WORLD_SIZE", "2"}});
    FAIL() << "WORLD_SIZE=2 alone was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("MASTER_ADDR"), std::string::npos);
  }
}

TEST(STATE_006, WithoutADeviceCpuCountsAsAskedFor) {
  const auto placement =
      place({{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, {});
  EXPECT_EQ(placement.type, DistributedType::multi_cpu);
  EXPECT_EQ(placement.world, (World{1, 2}));
}

TEST(STATE_104, CpuIsForcedByArgumentOrEnvironment) {
  const Environment ranks{{"LOCAL_RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(place(ranks, {.cpu = true, .num_devices = 2}).type, DistributedType::multi_cpu);
  auto forced = ranks;
  forced.set("ACCELERATE_USE_CPU", "yes");
  EXPECT_EQ(place(forced, {.num_devices = 2}).type, DistributedType::multi_cpu);
}

TEST(STATE_106, LaunchedRanksWithoutAnAcceleratorDoNotEachBelieveToBeAlone) {
  EXPECT_EQ(place({{"LOCAL_RANK", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, {}).world.size,
            2);
}

TEST(STATE_107, CpuCombinesWithSeveralProcesses) {
  EXPECT_EQ(place_on_cpu({{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}).type, DistributedType::multi_cpu);
}

TEST(STATE_108, ABackendThatDoesNotFitIsRefusedWithBothNames) {
  const Environment ranks{{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(place(ranks, {.cpu = true, .backend = "gloo"}).backend, "gloo");
  try {
    place(ranks, {.cpu = true, .backend = "nccl"});
    FAIL() << "nccl was taken on the CPU";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'gloo'"), std::string::npos);
    EXPECT_NE(text.find("'nccl'"), std::string::npos);
  }
}

TEST(Placement, RefusesAWorldOfNoneAndARankOutsideIt) {
  EXPECT_THROW(place_on_cpu({{"WORLD_SIZE", "0"}}), InvalidArgument);
  EXPECT_THROW(place_on_cpu({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}), InvalidArgument);
}

TEST(Placement, ChoosesTheBackendByLockstepsOwnVariables) {
  Environment ranks{{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCKSTEP_SIM", "1"}};
  EXPECT_EQ(place_on_cpu(ranks).backend, "checked:gloo");
  ranks.set("LOCKSTEP_BACKEND", "/some/plugin.so");
  EXPECT_EQ(place_on_cpu(ranks).backend, "/some/plugin.so");
}

TEST(Placement, UnderTorchrunTheAgentRunsTheStore) {
  Environment ranks{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_TRUE(place_on_cpu(ranks).rendezvous.hosted_here);
  ranks.set("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_FALSE(place_on_cpu(ranks).rendezvous.hosted_here);
}

}  // namespace
}  // namespace lockstep::state
