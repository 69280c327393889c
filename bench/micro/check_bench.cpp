// What the checking of a call costs by itself: post it and compare it with the calls of the peers, which are there
// already. Wall time by Google Benchmark. `check_bench --calls N` only makes N calls: ci/bench_check counts its
// instructions.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/sim/check/checked_group.h"
#include "lockstep/sim/place/capture.h"

namespace {

using namespace lockstep::sim;

/// A world whose ranks all live in this process, so that each call of the last rank finds the others' there.
class World {
 public:
  explicit World(int size) : board_(Board::create("check-bench", size)) {
    Board::remove_name(board_->name());
    std::vector<int> everyone;
    for (int rank = 0; rank < size; ++rank) everyone.push_back(rank);
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(CheckedRank::join(board_, rank, {}, "", {}));
      groups_.push_back(ranks_.back()->join_group("world", everyone));
    }
  }
  CheckedGroup& group(std::size_t rank) { return *groups_[rank]; }
  [[nodiscard]] std::size_t size() const { return groups_.size(); }

 private:
  std::shared_ptr<Board> board_;
  std::vector<std::shared_ptr<CheckedRank>> ranks_;
  std::vector<std::shared_ptr<CheckedGroup>> groups_;
};

layout::Wait post(CheckedGroup& group) {
  Shapes shapes;
  shapes.add(6, {1024, 256});
  const auto frames = capture_frames();
  return group.post({.operation = Operation::allreduce, .reduce_op = 0, .shapes = &shapes},
                    {.site = {.frames = {frames.addresses.data(), static_cast<std::size_t>(frames.count)}}});
}

void PostAndCompare(benchmark::State& state) {
  World world(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t rank = 0; rank + 1 < world.size(); ++rank) post(world.group(rank));
    state.ResumeTiming();
    benchmark::DoNotOptimize(post(world.group(world.size() - 1)));
  }
}
BENCHMARK(PostAndCompare)->Arg(2)->Arg(4)->Arg(8);

// Without stopping the clock, which costs more than the call: all ranks of a world of two post in turn.
void PostAndCompareByTurns(benchmark::State& state) {
  World world(2);
  for (auto _ : state) {
    benchmark::DoNotOptimize(post(world.group(0)));
    benchmark::DoNotOptimize(post(world.group(1)));
  }
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(PostAndCompareByTurns);

void make_calls(long count) {
  World world(2);
  for (long i = 0; i < count; i += 2) {
    post(world.group(0));
    post(world.group(1));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--calls") {
    make_calls(std::strtol(argv[2], nullptr, 10));
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
