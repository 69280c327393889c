// Failures from the field, as small inputs: what a rank makes of its environment.
#include <gtest/gtest.h>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/base/error.h"
#include "lockstep/data/data_testing.h"
#include "lockstep/state/environment_check.h"
#include "lockstep/state/placement.h"
#include "lockstep/state/state_test_support.h"
#include "run_ranks.h"

namespace lockstep {
namespace {

using state::as_rank;
using state::Environment;
using test::message_of;

TEST(CaseI5, OneProcessIsAPlainOneAndQuiet) {
  testing::internal::CaptureStderr();
  for (const auto& alone :
       {Environment{{"ACCELERATE_USE_CPU", "1"}},
        Environment{{"ACCELERATE_USE_CPU", "1"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "0"}}}) {
    as_rank(alone, [] {
      Accelerator accelerator;
      EXPECT_EQ(accelerator.distributed_type(), state::DistributedType::no);
      EXPECT_FALSE(accelerator.use_distributed());
      EXPECT_EQ(accelerator.num_processes(), 1);
      const auto loader = accelerator.prepare(data::DataLoader(data::test::Ids{3}, {.batch_size = 2}));
      EXPECT_EQ(data::test::drain_loader(*loader).size(), 2U);
    });
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(CaseI7, SwitchesMeanTheSameInAnyCase) {
  for (const auto* on : {"TRUE", "True", "true", "1"}) {
    as_rank({{"ACCELERATE_USE_CPU", on}, {"ACCELERATE_DEBUG_MODE", on}}, [on] {
      const Accelerator accelerator;
      EXPECT_TRUE(accelerator.device().is_cpu()) << on;
      EXPECT_TRUE(accelerator.state().debug()) << on;
    });
  }
}

// STATE-113 comes first: the case of the word matters. It is refused then, and never taken for unset.
TEST(CaseI7, APrecisionInCapitalsIsRefusedAndNotOverlooked) {
  as_rank({{"ACCELERATE_USE_CPU", "1"}, {"ACCELERATE_MIXED_PRECISION", "FP16"}}, [] {
    const auto text = message_of<InvalidArgument>([] { Accelerator(); });
    EXPECT_NE(text.find("expected one of no, fp8, fp16, bf16, got 'FP16'"), std::string::npos) << text;
  });
}

TEST(CaseI9, APortThatNobodyCouldFindIsRefusedOnEveryRankAtOnce) {
  for (const auto* rank : {"0", "1"}) {
    const Environment environment{{"ACCELERATE_USE_CPU", "1"}, {"RANK", rank},
                                  {"LOCAL_RANK", rank},        {"WORLD_SIZE", "2"},
                                  {"LOCAL_WORLD_SIZE", "2"},   {"MASTER_ADDR", "localhost"},
                                  {"MASTER_PORT", "0"}};
    const auto text = message_of<InvalidArgument>([&] { static_cast<void>(state::place(environment, {})); });
    EXPECT_NE(text.find("expected a port that all ranks know, got MASTER_PORT 0"), std::string::npos) << text;
    EXPECT_NE(text.find("Set MASTER_PORT to a free port"), std::string::npos) << text;
    EXPECT_EQ(state::refused_variable_warnings(environment), std::vector{text}) << "what lockstep env says before";
  }
}

}  // namespace
}  // namespace lockstep
