#include "lockstep/sim/gallery/generated/generate.h"

#include <algorithm>
#include <numeric>

#include "lockstep/sim/gallery/generated/dice.h"

namespace lockstep::sim::generated {
namespace {

using Ranks = std::vector<int>;

constexpr std::size_t kFewestCalls = 10;
constexpr int kLastOperationBefore = 200;  // the lines after it are for what is still waited for

const std::vector<std::vector<std::int64_t>> kShapes = {{12},      {24},   {64},    {3, 4}, {4, 3},
                                                        {2, 3, 4}, {5, 5}, {1, 16}, {8, 2}};
const std::vector<Action> kCollectives = {Action::all_reduce,     Action::broadcast,  Action::all_gather,
                                          Action::reduce_scatter, Action::all_to_all, Action::gather,
                                          Action::scatter,        Action::reduce,     Action::barrier};

/// Asynchronous calls that some ranks have made at a line, and wait for after so many more operations.
struct Outstanding {
  Ranks ranks;
  int line;
  int due;
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : dice_(seed) {
    program_.world_size = dice_.between(2, 6);
    program_.ranks.resize(static_cast<std::size_t>(program_.world_size));
    Ranks everyone(program_.ranks.size());
    std::iota(everyone.begin(), everyone.end(), 0);
    program_.groups.push_back({.name = "world", .ranks = everyone});
    for (int more = dice_.below(3); more > 0; --more) add_group(everyone);
  }

  Program run() {
    const auto target = static_cast<std::size_t>(dice_.between(12, 44));
    while (longest() < target && line_ < kLastOperationBefore) add_operation();
    while (shortest() + 1 < kFewestCalls) add_collective(0);
    for (auto& outstanding : outstanding_) deal_wait(outstanding);
    deal(program_.groups.front().ranks, {.action = Action::barrier});
    add_delays();
    return std::move(program_);
  }

 private:
  void add_group(Ranks ranks) {
    const auto size = static_cast<std::size_t>(dice_.between(2, program_.world_size));
    while (ranks.size() > size) ranks.erase(ranks.begin() + dice_.below(ranks.size()));
    program_.groups.push_back({.name = "group" + std::to_string(program_.groups.size()), .ranks = std::move(ranks)});
  }

  // One operation, and the waits that are due after it.
  void add_operation() {
    const int group = dice_.chance(50) ? 0 : dice_.below(program_.groups.size());
    const int kind = dice_.below(100);
    if (kind < 55) {
      add_collective(group);
    } else if (kind < 75) {
      add_message(group);
    } else if (kind < 82) {
      add_exchange(group);
    } else if (kind < 92) {
      add_data_parallel_step(group);
    } else {
      add_key();
    }
    for (auto& outstanding : outstanding_) {
      if (--outstanding.due == 0) deal_wait(outstanding);
    }
    std::erase_if(outstanding_, [](const Outstanding& each) { return each.due == 0; });
  }

  void add_collective(int group) {
    const auto& ranks = members(group);
    auto call = with_tensor({.action = dice_.one_of(kCollectives), .group = group});
    if (has_root(call.action)) call.peer = dice_.one_of(ranks);
    call.asynchronous = dice_.chance(30);
    start(ranks, call);
  }

  void add_message(int group) {
    const auto [from, to] = two_of(members(group));
    const auto message = with_tensor({.action = Action::send, .group = group, .tag = dice_.below(4)});
    start_end(Action::send, from, to, message, dice_.chance(40));
    start_end(Action::receive, to, from, message, dice_.chance(40));
  }

  // Two ranks send to each other at the same time, which needs sends that do not wait.
  void add_exchange(int group) {
    const auto [one, other] = two_of(members(group));
    const auto message = with_tensor({.action = Action::send, .group = group, .tag = dice_.below(4)});
    start_end(Action::send, one, other, message, true);
    start_end(Action::send, other, one, message, true);
    start_end(Action::receive, one, other, message, dice_.chance(50));
    start_end(Action::receive, other, one, message, dice_.chance(50));
  }

  void start_end(Action action, int rank, int partner, Call message, bool asynchronous) {
    message.action = action;
    message.peer = partner;
    message.asynchronous = asynchronous;
    start({rank}, message);
  }

  void add_data_parallel_step(int group) {
    const auto& ranks = members(group);
    const bool are_alike = dice_.chance(50);  // buckets that only their names tell apart
    auto bucket = with_tensor({.action = Action::all_reduce, .group = group, .asynchronous = true});
    bucket.reduction = Reduction::sum;
    std::vector<int> lines;
    for (int left = dice_.between(2, 4); left > 0; --left) {
      const auto layer = "layer" + std::to_string(left);
      bucket.label = layer + ".weight\n" + layer + ".bias";
      if (!are_alike) bucket.shape = dice_.one_of(kShapes);
      lines.push_back(deal(ranks, bucket));
    }
    for (const int line : lines) deal(ranks, {.action = Action::wait, .awaited = line});
  }

  void add_key() {
    const auto [setter, waiter] = two_of(members(0));
    const auto key = "ready/" + std::to_string(line_);
    deal({setter}, {.action = Action::store_set, .key = key});
    Ranks waiters = {waiter};
    for (const int rank : members(0)) {
      if (rank != setter && rank != waiter && dice_.chance(30)) waiters.push_back(rank);
    }
    deal(waiters, {.action = Action::store_wait, .key = key});
  }

  Call with_tensor(Call call) {
    if (!has_tensor(call.action)) return call;
    call.dtype = static_cast<Dtype>(dice_.below(4));
    call.shape = dice_.one_of(kShapes);
    if (has_reduction(call.action)) call.reduction = static_cast<Reduction>(dice_.below(4));
    return call;
  }

  void start(const Ranks& ranks, const Call& call) {
    const int line = deal(ranks, call);
    if (call.asynchronous) outstanding_.push_back({.ranks = ranks, .line = line, .due = dice_.between(1, 6)});
  }

  void deal_wait(const Outstanding& outstanding) {
    deal(outstanding.ranks, {.action = Action::wait, .awaited = outstanding.line});
  }

  // The next line of the program, for these ranks.
  int deal(const Ranks& ranks, Call call) {
    call.line = line_++;
    for (const int rank : ranks) program_.ranks[static_cast<std::size_t>(rank)].push_back(call);
    return call.line;
  }

  void add_delays() {
    for (auto& calls : program_.ranks) {
      for (auto& call : calls) {
        if (dice_.chance(40)) call.delay_ms = dice_.between(1, 3);
        if (dice_.chance(1)) call.delay_ms = 30;
      }
    }
  }

  [[nodiscard]] const Ranks& members(int group) const { return program_.groups[static_cast<std::size_t>(group)].ranks; }

  std::pair<int, int> two_of(const Ranks& ranks) {
    const int one = dice_.below(ranks.size());
    const int steps = dice_.between(1, static_cast<int>(ranks.size()) - 1);
    const auto other = static_cast<std::size_t>(one + steps) % ranks.size();
    return {ranks[static_cast<std::size_t>(one)], ranks[other]};
  }

  [[nodiscard]] std::size_t longest() const { return std::ranges::max(program_.ranks, {}, kSize).size(); }
  [[nodiscard]] std::size_t shortest() const { return std::ranges::min(program_.ranks, {}, kSize).size(); }
  static constexpr auto kSize = [](const std::vector<Call>& calls) { return calls.size(); };

  Dice dice_;
  Program program_;
  int line_ = 0;
  std::vector<Outstanding> outstanding_;
};

}  // namespace

Program generate(std::uint64_t seed) { return Generator(seed).run(); }

}  // namespace lockstep::sim::generated
