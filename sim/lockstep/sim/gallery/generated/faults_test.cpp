#include "lockstep/sim/gallery/generated/faults.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lockstep/sim/gallery/generated/case.h"
#include "lockstep/sim/gallery/generated/generate.h"

namespace lockstep::sim::generated {
namespace {

// Everywhere where it can be planted, in a few programs.
TEST(GeneratedFaults, EveryOneChangesOneRankAndLeavesAProgram) {
  std::map<FaultKind, int> num_planted;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const auto healthy = generate(seed);
    for (const auto kind : all_fault_kinds()) {
      for (int rank = 0; rank < healthy.world_size; ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        for (int position = 0; position < static_cast<int>(healthy.ranks[index].size()); ++position) {
          for (const int value : values_for(kind, healthy, rank, position)) {
            const Fault fault{.kind = kind, .rank = rank, .position = position, .value = value};
            auto program = with_fault(healthy, fault);
            ASSERT_NE(program.ranks[index], healthy.ranks[index])
                << "seed " << seed << ": " << describe(fault, healthy);
            if (num_planted[kind]++ % 20 == 0) {  // reading is where a program is checked, and takes its time
              ASSERT_EQ(parse_program(to_json(program)), program)
                  << "seed " << seed << ": " << describe(fault, healthy);
            }
            program.ranks[index] = healthy.ranks[index];
            ASSERT_EQ(program, healthy) << "seed " << seed << ": " << describe(fault, healthy);
          }
        }
      }
    }
  }
  for (const auto kind : all_fault_kinds()) EXPECT_GT(num_planted[kind], 0) << to_word(kind);
}

TEST(GeneratedFaults, ABlockIsMadeTwiceOrNotAtAll) {
  Program healthy{.world_size = 1, .groups = {{.name = "world", .ranks = {0}}}, .ranks = {{}}};
  for (int line = 0; line < 5; ++line) healthy.ranks[0].push_back({.line = line});
  const auto lines_with = [&](int length) {
    std::vector<int> lines;
    const auto program = with_fault(healthy, {.kind = FaultKind::loop, .position = 1, .value = length});
    for (const auto& call : program.ranks[0]) lines.push_back(call.line);
    return lines;
  };
  EXPECT_EQ(lines_with(2), (std::vector{0, 1, 2, 1, 2, 3, 4}));
  EXPECT_EQ(lines_with(-2), (std::vector{0, 3, 4}));
  EXPECT_EQ(values_for(FaultKind::loop, healthy, 0, 1), (std::vector{2, -2, 3, -3}));
}

TEST(GeneratedFaults, NobodyLeavesWithCallsUnderWay) {
  const Program healthy{.world_size = 2,
                        .groups = {{.name = "world", .ranks = {0, 1}}},
                        .ranks = {{{.line = 0, .action = Action::send, .shape = {12}, .peer = 1, .asynchronous = true},
                                   {.line = 1, .action = Action::barrier},
                                   {.line = 2, .action = Action::wait, .awaited = 0},
                                   {.line = 3, .action = Action::barrier}},
                                  {}}};
  std::vector<bool> may_leave;
  for (int position = 0; position < 4; ++position) {
    may_leave.push_back(!values_for(FaultKind::leave, healthy, 0, position).empty());
  }
  EXPECT_EQ(may_leave, (std::vector{true, false, false, true}));
}

TEST(GeneratedFaults, RandomOnesAreOfAllKindsAndTheSeedRepeatsThem) {
  std::set<FaultKind> seen;
  int num_harmless = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto one = make_case(seed);
    seen.insert(one.fault.kind);
    num_harmless += one.is_harmless() ? 1 : 0;
    if (one.is_harmless()) EXPECT_EQ(one.expected.size(), 1U) << "seed " << seed;
  }
  EXPECT_EQ(seen.size(), all_fault_kinds().size());
  EXPECT_LT(num_harmless, 60);
  EXPECT_EQ(make_case(11).program, make_case(11).program);
}

}  // namespace
}  // namespace lockstep::sim::generated
