// What gather_for_metrics adds to the all-gather in it: 1 MiB on each of 2 ranks over Gloo, interleaved. Prints the
// ratio with its 95 % interval.
//
//   gather_overhead [--rounds 160]
//
// Exit code 0 if the interval lies below the limit of docs/benchmarks.md, 1 if not.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <tuple>

#include "interleaved.h"
#include "lockstep/accelerator/accelerator.h"

namespace {

constexpr std::int64_t kElements = 262'144;  // float32: 1 MiB
constexpr int kCalls = 30;
constexpr double kLimit = 1.05;  // of the upper end of the ratio's interval

void measure(int rounds) {
  const lockstep::Accelerator accelerator;
  const auto& group = accelerator.world_group();
  const auto tensor = at::zeros({kElements});
  const auto seconds_per_call = [&](const std::function<void()>& call) {
    group.barrier().wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kCalls;
  };
  const auto bare = [&] { group.all_gather(at::empty({2 * kElements}), tensor).wait(); };
  const auto for_metrics = [&] { std::ignore = accelerator.gather_for_metrics(tensor); };
  const auto [ratio, bare_seconds] = lockstep::bench::interleave(
      rounds, [&] { return seconds_per_call(bare); }, [&] { return seconds_per_call(for_metrics); });
  if (!accelerator.is_main_process()) return;
  std::cout << fmt::format(
      "gather_for_metrics 1 MiB: all-gather {:.1f} us  ratio {:.4f}  95 % interval {:.4f} to {:.4f}  limit {:.2f}\n",
      bare_seconds * 1e6, ratio.middle, ratio.low, ratio.high, kLimit);
  if (ratio.high >= kLimit) throw std::runtime_error("gather_for_metrics costs more than its limit");
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::bench::compare_on_two_ranks(argc, argv, "What gather_for_metrics costs, against a bare all-gather.",
                                               measure);
}
