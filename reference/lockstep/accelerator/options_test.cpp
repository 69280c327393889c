// What the Accelerator is made with: how its ranks meet, where its project is, and what it does not have.
#include <gtest/gtest.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/base/error.h"
#include "lockstep/state/state_test_support.h"

namespace lockstep {
namespace {

using config::InitProcessGroupKwargs;
using config::ProjectConfiguration;
using state::as_rank;
using state::WorldOfOne;
using std::chrono::seconds;

const state::Environment kCpu{{"ACCELERATE_USE_CPU", "1"}};

AcceleratorOptions with(const InitProcessGroupKwargs& kwargs) { return {.init_process_group_kwargs = kwargs}; }

TEST(KW_013, DefaultsAndTheTimeoutThatStandsForNone) {
  const InitProcessGroupKwargs kwargs;
  EXPECT_EQ(kwargs.backend, "nccl");
  EXPECT_FALSE(kwargs.init_method);
  EXPECT_FALSE(kwargs.timeout);
  EXPECT_EQ(kwargs.resolved_timeout(), seconds(600));
  EXPECT_EQ(InitProcessGroupKwargs{.backend = "gloo"}.resolved_timeout(), seconds(1800));
  EXPECT_EQ(InitProcessGroupKwargs{.backend = std::nullopt}.resolved_timeout(), seconds(1800));
  EXPECT_EQ((InitProcessGroupKwargs{.backend = "gloo", .timeout = seconds(7)}.resolved_timeout()), seconds(7));
  EXPECT_EQ(kwargs, InitProcessGroupKwargs{});
  EXPECT_NE(kwargs, InitProcessGroupKwargs{.init_method = "env://"});
}

TEST(KW_013, TheTimeoutIsTheGroups) {
  const WorldOfOne world;
  as_rank(world.environment(), [] {
    const Accelerator accelerator(with({.timeout = seconds(77)}));
    EXPECT_EQ(accelerator.world_group().timeout(), seconds(77));
  });
}

TEST(KW_013, TwoTimeoutsThatDifferAreRefused) {
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator({.timeout = seconds(5), .init_process_group_kwargs = {.timeout = seconds(6)}}),
                 InvalidArgument);
    EXPECT_NO_THROW(Accelerator({.timeout = seconds(5), .init_process_group_kwargs = {.timeout = seconds(5)}}));
  });
}

TEST(KW_013, ATimeoutThatIsNoneIsRefusedAlsoByASingleProcess) {
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator({.timeout = seconds(0)}), InvalidArgument);
    EXPECT_THROW(Accelerator(with({.timeout = seconds(-5)})), InvalidArgument);
  });
}

TEST(KW_013, RanksMeetByTheEnvironmentAlone) {
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator(with({.init_method = "tcp://127.0.0.1:29500"})), NotSupported);
    EXPECT_NO_THROW(Accelerator(with({.init_method = "env://"})));
  });
}

TEST(KW_015, ABackendThatIsNotTheDevicesIsRefused) {
  const WorldOfOne world;
  as_rank(world.environment(), [] { EXPECT_THROW(Accelerator(with({.backend = "mpi"})), InvalidArgument); });
}

TEST(KW_015, TheDefaultNamesNoBackend) {
  const WorldOfOne world;
  as_rank(world.environment(), [] {
    const Accelerator accelerator(with({.backend = "nccl"}));
    EXPECT_EQ(accelerator.state().backend(), "gloo");
  });
}

TEST(KW_015, InASingleProcessABackendIsIgnored) {
  for (const auto* backend : {"gloo", "mpi"}) {
    as_rank(kCpu, [backend] {
      const Accelerator accelerator(with({.backend = backend}));
      EXPECT_EQ(accelerator.distributed_type(), state::DistributedType::no);
    });
  }
}

TEST(KW_028, ProjectDefaults) {
  const ProjectConfiguration project;
  EXPECT_FALSE(project.project_dir || project.logging_dir || project.total_limit);
  EXPECT_FALSE(project.automatic_checkpoint_naming || project.save_on_each_node);
  EXPECT_EQ(project.iteration, 0);
  EXPECT_EQ(ProjectConfiguration{.project_dir = "a"}.resolved_logging_dir(), "a");
}

TEST(KW_028, WhatNoCheckpointWouldObeyIsRefused) {
  as_rank(kCpu, [] {
    EXPECT_THROW(Accelerator({.project_config = {.automatic_checkpoint_naming = true}}), NotSupported);
    EXPECT_THROW(Accelerator({.project_config = {.total_limit = 3}}), NotSupported);
    EXPECT_THROW(Accelerator({.project_config = {.save_on_each_node = true}}), NotSupported);
  });
}

TEST(KW_029, MovingAProjectLeavesItsLogs) {
  ProjectConfiguration project{.project_dir = "a"};
  project.set_directories("b");
  EXPECT_EQ(project.project_dir, "b");
  EXPECT_EQ(project.resolved_logging_dir(), "a");
  ProjectConfiguration fresh;
  fresh.set_directories("b");
  EXPECT_EQ(fresh.resolved_logging_dir(), "b");
}

TEST(KW_030, TheAcceleratorsDirectoryFillsAConfigurationWithoutOne) {
  as_rank(kCpu, [] {
    const Accelerator filled({.project_dir = "here"});
    EXPECT_EQ(filled.project_dir(), "here");
    EXPECT_EQ(filled.logging_dir(), "here");
    const Accelerator ignored({.project_dir = "here", .project_config = {.project_dir = "there", .iteration = 3}});
    EXPECT_EQ(ignored.project_dir(), "there");
    EXPECT_EQ(ignored.save_iteration(), 3);
    const Accelerator logs({.project_dir = "here", .logging_dir = "logs"});
    EXPECT_EQ(logs.logging_dir(), "logs");
    EXPECT_THROW(Accelerator({.logging_dir = "logs", .project_config = {.logging_dir = "others"}}), InvalidArgument);
  });
}

TEST(KW_031, TheOnlyCompilerIsNone) {
  as_rank(kCpu, [] {
    EXPECT_NO_THROW(Accelerator({.dynamo_backend = "NO"}));
    EXPECT_THROW(Accelerator({.dynamo_backend = "inductor"}), NotSupported);
  });
  auto environment = kCpu;
  environment.set("ACCELERATE_DYNAMO_BACKEND", "INDUCTOR");
  as_rank(environment, [] {
    EXPECT_THROW(Accelerator(), NotSupported);
    EXPECT_NO_THROW(Accelerator({.dynamo_backend = "no"}));
  });
}

TEST(KW_031, WhatAPluginLeavesUnsetIsTheEnvironments) {
  const std::string prefix = "ACCELERATE_DYNAMO_";
  auto environment = kCpu;
  environment.set(prefix + "MODE", "max-autotune");
  environment.set(prefix + "USE_FULLGRAPH", "1");
  environment.set(prefix + "USE_DYNAMIC", "0");
  environment.set(prefix + "USE_REGIONAL_COMPILATION", "true");
  as_rank(environment, [] {
    const Accelerator accelerator({.dynamo_plugin = config::TorchDynamoPlugin{.backend = "NO", .fullgraph = false}});
    EXPECT_EQ(accelerator.state().dynamo_plugin(), (config::TorchDynamoPlugin{.backend = "no",
                                                                              .mode = "max-autotune",
                                                                              .fullgraph = false,
                                                                              .dynamic = false,
                                                                              .use_regional_compilation = true}));
  });
  as_rank(kCpu, [] {
    const Accelerator accelerator;
    EXPECT_EQ(accelerator.state().dynamo_plugin(),
              (config::TorchDynamoPlugin{
                  .backend = "no", .mode = "default", .fullgraph = false, .use_regional_compilation = false}));
  });
}

TEST(KW_031, APluginAndABackendTogetherAreRefused) {
  as_rank(kCpu, [] {
    const config::TorchDynamoPlugin inductor{.backend = "inductor"};
    EXPECT_THROW(Accelerator({.dynamo_plugin = inductor}), NotSupported);
    EXPECT_THROW(Accelerator({.dynamo_backend = "no", .dynamo_plugin = config::TorchDynamoPlugin{}}), InvalidArgument);
  });
}

TEST(AcceleratorOptions, WhatIsNotThereIsRefusedByName) {
  as_rank(kCpu, [] { EXPECT_THROW(Accelerator({.log_with = {"wandb"}}), NotSupported); });
  for (const std::string engine : {"DEEPSPEED", "FSDP", "MEGATRON_LM", "PARALLELISM_CONFIG"}) {
    auto environment = kCpu;
    environment.set("ACCELERATE_USE_" + engine, "true");
    as_rank(environment, [&engine] {
      try {
        const Accelerator accelerator;
        ADD_FAILURE() << engine << " was not refused";
      } catch (const NotSupported& error) {
        EXPECT_NE(std::string(error.what()).find("ACCELERATE_USE_" + engine), std::string::npos) << error.what();
      }
      EXPECT_FALSE(state::AcceleratorState::is_initialized()) << "refused before anything was made";
    });
  }
}

}  // namespace
}  // namespace lockstep
