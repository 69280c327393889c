#pragma once

#include <string>

#include "lockstep/sim/report/verdict.h"

/// Verdicts as runs have them, for the tests of both reports.
namespace lockstep::sim::report {

inline Place place_at(int line, const std::string& function) {
  Place place;
  place.file = "train.cpp";
  place.line = line;
  place.function = function;
  return place;
}

inline RankStanding blocked(int rank, const std::string& op, int line) {
  RankStanding standing;
  standing.rank = rank;
  standing.state = RankState::blocked;
  standing.op = op;
  standing.seq = 4;
  standing.group = "world";
  standing.step = 3;
  standing.place = place_at(line, "step");
  return standing;
}

inline Verdict verdict_of(Outcome outcome, const std::string& cause) {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.cause = cause;
  return verdict;
}

inline Verdict deadlock_verdict() {
  auto verdict =
      verdict_of(Outcome::deadlock, "rank 1 waits in barrier #4 for rank 0, which waits in allreduce #4 for rank 1");
  verdict.ranks = {blocked(0, "allreduce", 41), blocked(1, "barrier", 57), blocked(2, "barrier", 57)};
  verdict.ranks[0].label = {"fc1.weight", "fc1.bias"};
  verdict.ranks[0].waits_for = {1, 2};
  verdict.ranks[1].waits_for = {0};
  verdict.ranks[2].waits_for = {0};
  verdict.edges = {{0, 1}, {0, 2}, {1, 0}, {2, 0}};
  verdict.first = 0;
  verdict.since_stall_s = 0.21;
  verdict.seed = 7;
  verdict.hint = "Compare the ways of the ranks to these places.";
  verdict.replay = "lockstep sim replay lockstep-runs/1";
  verdict.notes = {"different call sites: train.cpp:41, train.cpp:57"};
  return verdict;
}

inline Verdict mismatch_verdict() {
  auto verdict = verdict_of(Outcome::mismatch, "rank 1 calls broadcast #4; ranks 0, 2 call allreduce #4");
  verdict.ranks = {blocked(0, "allreduce", 41), blocked(1, "broadcast", 43), blocked(2, "allreduce", 41)};
  for (auto& standing : verdict.ranks) {
    standing.dtype = "float32";
    standing.shapes = {{2, 3}};
  }
  verdict.ranks[0].reduce_op = verdict.ranks[2].reduce_op = "sum";
  verdict.ranks[1].peer = 0;
  verdict.first = 1;
  return verdict;
}

inline Verdict rank_failed_verdict() {
  auto verdict = verdict_of(Outcome::rank_failed, "rank 2 failed: RuntimeError: out of patience");
  RankStanding failed;
  failed.rank = 2;
  failed.state = RankState::failed;
  failed.kind = "RuntimeError";
  failed.message = "out of\npatience";
  failed.failed_at = place_at(12, "train");
  failed.exit_code = 3;
  failed.errors = {"what(): out of patience"};
  verdict.ranks = {blocked(0, "allreduce", 41), blocked(1, "allreduce", 41), failed};
  verdict.ranks[0].waits_for = verdict.ranks[1].waits_for = {2};
  verdict.first = 2;
  return verdict;
}

inline Verdict straggler_verdict() {
  auto verdict = verdict_of(Outcome::straggler, "rank 1 lets others wait, longer than the limit");
  verdict.ranks = {blocked(0, "allreduce", 41), blocked(1, "allreduce", 41)};
  verdict.ranks[1].state = RankState::running;
  verdict.ranks[1].seq = 3;
  verdict.ranks[1].step = 2;
  verdict.edges = {{0, 1}};
  verdict.first = 1;
  return verdict;
}

inline Verdict unchecked_verdict() {
  auto verdict = verdict_of(Outcome::unchecked, "no rank ever made a group that is checked");
  verdict.hint = "Make the groups through Lockstep.";
  return verdict;
}

inline Verdict interrupted_verdict() {
  auto verdict = verdict_of(Outcome::interrupted, "interrupted by signal 2 (Interrupt)");
  verdict.signal = 2;
  verdict.ranks.resize(2);
  verdict.ranks[1].rank = 1;
  return verdict;
}

}  // namespace lockstep::sim::report
