#include "lockstep/state/placement.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "run_ranks.h"

namespace lockstep::state {
namespace {

Placement place_on_cpu(const Environment& environment) { return place(environment, {.cpu = true}); }

std::string refusal(const Environment& environment) {
  return test::message_of<InvalidArgument>([&environment] { place_on_cpu(environment); });
}

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
    const auto placement = place_on_cpu({{"RANK", "0"}, {size, "2"}, {"MASTER_ADDR", "127.0.0.1"}});
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

TEST(STATE_003, SeveralProcessesWithoutARankAreRefused) {
  const std::string text =
      "RANK and WORLD_SIZE: expected a rank in a world of 2, got none (a negative one counts as unset). Set RANK to "
      "this "
      "process's number, from 0 to 1, or unset WORLD_SIZE to run alone.";
  EXPECT_EQ(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}), text);
  EXPECT_EQ(refusal({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}}), text);
  EXPECT_EQ(place_on_cpu({{"RANK", "-1"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}).world, (World{0, 1}));
}

TEST(STATE_003, ARankAboveZeroWithoutAWorldIsRefused) {
  const std::string text =
      "RANK and WORLD_SIZE: expected a world size beside a rank above 0, got rank 1 and no world size. Set WORLD_SIZE "
      "to "
      "the number of ranks, or unset RANK to run alone.";
  EXPECT_EQ(refusal({{"RANK", "1"}}), text);
  EXPECT_EQ(refusal({{"OMPI_COMM_WORLD_RANK", "1"}, {"LOCAL_RANK", "1"}}), text);
  EXPECT_NE(refusal({{"RANK", "1"}, {"WORLD_SIZE", "1"}}).find("rank 1 in a world of 1"), std::string::npos);
  EXPECT_EQ(place_on_cpu({{"RANK", "0"}}).type, DistributedType::no);
}

TEST(STATE_004, PortDefaultsAndAWorldBeyondThisMachineNeedsAnAddress) {
  EXPECT_EQ(place_on_cpu({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}).rendezvous.port, 29500);
  EXPECT_NE(refusal({{"WORLD_SIZE", "2"}}).find("MASTER_ADDR"), std::string::npos);
}

TEST(STATE_006, WithoutADeviceCpuCountsAsAskedFor) {
  const auto placement =
      place({{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}, {});
  EXPECT_EQ(placement.type, DistributedType::multi_cpu);
  EXPECT_EQ(placement.world, (World{1, 2}));
}

TEST(STATE_104, CpuIsForcedByArgumentOrEnvironment) {
  const Environment ranks{{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
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
  EXPECT_EQ(place_on_cpu({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}).type,
            DistributedType::multi_cpu);
}

TEST(STATE_108, ABackendThatDoesNotFitIsRefusedWithBothNames) {
  const Environment ranks{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(place(ranks, {.cpu = true, .backend = "gloo"}).backend, "gloo");
  const auto text = test::message_of<InvalidArgument>([&ranks] { place(ranks, {.cpu = true, .backend = "nccl"}); });
  EXPECT_NE(text.find("'gloo'"), std::string::npos);
  EXPECT_NE(text.find("'nccl'"), std::string::npos);
}

TEST(Placement, RefusesAWorldOfNoneAndARankOutsideIt) {
  EXPECT_THROW(place_on_cpu({{"WORLD_SIZE", "0"}}), InvalidArgument);
  EXPECT_THROW(place_on_cpu({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}), InvalidArgument);
}

TEST(Placement, ChoosesTheBackendByLockstepsOwnVariables) {
  Environment ranks{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCKSTEP_SIM", "1"}};
  EXPECT_EQ(place_on_cpu(ranks).backend, "checked:gloo");
  ranks.set("LOCKSTEP_BACKEND", "/some/plugin.so");
  EXPECT_EQ(place_on_cpu(ranks).backend, "/some/plugin.so");
}

TEST(Placement, RefusesAMisspeltBackendAlsoOfAProcessThatIsAlone) {
  for (const char* name : {"glooo", "checked:glooo", "GLOO"}) {
    const auto text = refusal({{"LOCKSTEP_BACKEND", name}});
    EXPECT_NE(text.find("expected one of gloo, threads"), std::string::npos) << text;
    EXPECT_NE(text.find("LOCKSTEP_BACKEND"), std::string::npos) << text;
  }
  for (const char* name : {"gloo", "nccl", "threads", "checked", "checked:threads", "/some/plugin.so", "plugin.so"}) {
    EXPECT_EQ(place_on_cpu({{"LOCKSTEP_BACKEND", name}}).type, DistributedType::no) << name;
  }
}

TEST(Placement, UnderTorchrunTheAgentRunsTheStore) {
  Environment ranks{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_TRUE(place_on_cpu(ranks).rendezvous.hosted_here);
  ranks.set("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_FALSE(place_on_cpu(ranks).rendezvous.hosted_here);
}

}  // namespace
}  // namespace lockstep::state
