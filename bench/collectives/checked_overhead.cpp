// What checking costs end to end: an all-reduce over Gloo with and without the checked backend, on 2 ranks,
// interleaved. Prints the ratio with its 95 % interval.
//
//   checked_overhead [--rounds 160]
//
// Exit code 0 if the intervals lie below the limits of docs/benchmarks.md, 1 if not.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <chrono>
#include <iostream>

#include "interleaved.h"
#include "lockstep/state/partial_state.h"

namespace {

using lockstep::comm::ProcessGroup;

struct Case {
  const char* name;
  std::int64_t num_elements;  // float32
  int calls_per_turn;
  double limit;  // of the upper end of the ratio's interval
};
constexpr Case kCases[] = {{"1 MiB", 262'144, 30, 1.05}, {"4 bytes", 1, 300, 1.03}};

double seconds_per_call(const ProcessGroup& group, const at::Tensor& tensor, int calls) {
  group.barrier().wait();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) group.all_reduce(tensor).wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

void measure(int rounds) {
  const lockstep::state::PartialState state;
  const auto& plain = state.world_group();
  const auto checked = plain.new_group({0, 1}, "checked", "checked");
  bool is_well = true;
  for (const auto& [name, num_elements, calls, limit] : kCases) {
    const auto tensor = at::zeros({num_elements});
    const auto [ratio, plain_seconds] = lockstep::bench::interleave(
        rounds, [&] { return seconds_per_call(plain, tensor, calls); },
        [&] { return seconds_per_call(checked, tensor, calls); });
    if (!state.is_main_process()) continue;
    std::cout << fmt::format("{:8} plain {:8.1f} us  ratio {:.4f}  95 % interval {:.4f} to {:.4f}  limit {:.2f}\n",
                             name, plain_seconds * 1e6, ratio.middle, ratio.low, ratio.high, limit);
    is_well = is_well && ratio.high < limit;
  }
  if (!is_well) throw std::runtime_error("the checked backend costs more than its limit");
}

}  // namespace

int main(int argc, char** argv) {
  return lockstep::bench::compare_on_two_ranks(argc, argv, "What the checked backend costs, against plain Gloo.",
                                               measure);
}
