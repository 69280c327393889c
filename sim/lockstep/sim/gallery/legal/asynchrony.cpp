// Legal, however odd: calls that are posted and waited for in other orders than one reads them in.
#include <chrono>
#include <cstdio>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

using std::chrono::milliseconds;

Member next(const Rank& rank) { return Member::global((rank.rank() + 1) % rank.world_size()); }
Member previous(const Rank& rank) { return Member::global((rank.rank() + rank.world_size() - 1) % rank.world_size()); }

// Rank 0 is in an all-reduce that rank 1 has not come to when it receives. Posted is not waited for.
LOCKSTEP_LEGAL(legal_send_during_an_all_reduce, 2) {
  const auto gradient = torch::ones({8});
  const auto message = torch::ones({4});
  for (int step = 0; step < 20; ++step) {
    if (rank.rank() == 0) {
      auto reduction = rank.world().all_reduce(gradient);
      rank.world().send(message, Member::global(1)).wait();
      reduction.wait();
    } else {
      rank.world().receive(message, Member::global(0)).wait();
      rank.world().all_reduce(gradient).wait();
    }
  }
}

// The same call from two lines: one branch has something to say first.
LOCKSTEP_LEGAL(legal_one_call_from_two_lines, 3) {
  const auto loss = torch::ones({1});
  for (int step = 0; step < 5; ++step) {
    if (rank.rank() == 0) {
      std::printf("step %d\n", step);
      rank.world().all_reduce(loss).wait();
    } else {
      rank.world().all_reduce(loss).wait();
    }
  }
}

// All ranks receive first, and nobody waits before all have sent.
LOCKSTEP_LEGAL(legal_receive_posted_before_the_send, 3) {
  const auto mine = torch::ones({16});
  const auto theirs = torch::empty({16});
  for (int step = 0; step < 20; ++step) {
    auto receive = rank.world().receive(theirs, previous(rank));
    auto send = rank.world().send(mine, next(rank));
    receive.wait();
    send.wait();
  }
}

// 64 MB in both directions at once, far more than sockets hold; one rank waits for its send first, the other for what
// it receives.
LOCKSTEP_LEGAL(legal_64_mb_both_ways, 2) {
  const auto mine = torch::ones({16 << 20});
  const auto theirs = torch::empty({16 << 20});
  auto send = rank.world().send(mine, next(rank));
  auto receive = rank.world().receive(theirs, previous(rank));
  if (rank.rank() == 0) {
    send.wait();
    receive.wait();
  } else {
    receive.wait();
    send.wait();
  }
}

// Three messages under one tag are under way between each two neighbours of a ring, and waited for from the last one.
LOCKSTEP_LEGAL(legal_three_in_flight_around_a_ring, 4) {
  std::vector<torch::Tensor> parts;
  std::vector<comm::Work> works;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(torch::empty({32}));
    works.push_back(rank.world().receive(parts.back(), previous(rank)));
  }
  for (int i = 0; i < 3; ++i) works.push_back(rank.world().send(torch::full({32}, 1.0 * i), next(rank)));
  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
}

// Messages under different tags do not wait for each other: the one that was sent last is received first.
LOCKSTEP_LEGAL(legal_tags_in_opposite_order, 2) {
  const auto small = torch::ones({2});
  const auto large = torch::ones({64});
  if (rank.rank() == 0) {
    auto first = rank.world().send(large, Member::global(1), {.tag = 1});
    auto second = rank.world().send(small, Member::global(1), {.tag = 2});
    first.wait();
    second.wait();
  } else {
    rank.world().receive(small, Member::global(0), {.tag = 2}).wait();
    rank.world().receive(large, Member::global(0), {.tag = 1}).wait();
  }
}

// Posted alike, waited for in an order of each rank's own.
LOCKSTEP_LEGAL(legal_waits_in_any_order, 3) {
  std::vector<comm::Work> works;
  for (int i = 0; i < 6; ++i) works.push_back(rank.world().all_reduce(torch::ones({8 + i})));
  for (int i = 0; i < 6; ++i) works[static_cast<std::size_t>((i * 5 + rank.rank()) % 6)].wait();
}

// A call need not be waited for. Rank 1 asks now and then whether it is through, the others forget about it.
LOCKSTEP_LEGAL(legal_work_that_nobody_waits_for, 3) {
  const auto statistics = torch::ones({8});
  const auto work = rank.world().all_reduce(statistics);
  while (rank.rank() == 1 && !work.is_completed()) std::this_thread::sleep_for(milliseconds(10));
  rank.world().barrier().wait();
}

// A barrier while an all-reduce is under way.
LOCKSTEP_LEGAL(legal_barrier_before_the_wait, 3) {
  const auto gradient = torch::ones({1 << 16});
  for (int step = 0; step < 10; ++step) {
    auto reduction = rank.world().all_reduce(gradient, {.op = ReduceOp::avg});
    rank.world().barrier().wait();
    reduction.wait();
  }
}

// The root posts 300 broadcasts before any other rank has begun with the first.
LOCKSTEP_LEGAL(legal_root_runs_ahead, 3) {
  std::vector<comm::Work> works;
  if (rank.rank() != 0) std::this_thread::sleep_for(milliseconds(300));
  for (int i = 0; i < 300; ++i) {
    works.push_back(rank.world().broadcast(torch::ones({4})));
    if (rank.rank() != 0) works.back().wait();
  }
  if (rank.rank() == 0) {
    for (auto& work : works) work.wait();
  }
}

// Results come from whichever rank is ready; the collector learns who it was.
LOCKSTEP_LEGAL(legal_receive_from_any, 4) {
  const auto result = torch::full({2}, 1.0 * rank.rank());
  if (rank.rank() == 0) {
    for (int i = 0; i < 6; ++i) {
      auto receive = rank.world().receive_from_any(result);
      receive.wait();
      std::printf("result from rank %d\n", receive.source_rank());
    }
  } else {
    for (int i = 0; i < 2; ++i) {
      std::this_thread::sleep_for(milliseconds(60 * rank.rank()));
      rank.world().send(result, Member::global(0)).wait();
    }
  }
}

// One rank waits for the future and not for the work. Nobody sees it wait, and it does.
LOCKSTEP_LEGAL(legal_future_waited_for_by_hand, 3) {
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 4; ++step) {
    if (rank.rank() == 2) std::this_thread::sleep_for(milliseconds(150));
    auto work = rank.world().all_reduce(gradient);
    if (rank.rank() == 1) {
      work.handle()->getFuture()->wait();
    } else {
      work.wait();
    }
  }
}

// Tensors without elements take part like all others.
LOCKSTEP_LEGAL(legal_tensors_without_elements, 3) {
  const auto nothing = torch::empty({0, 4});
  rank.world().all_reduce(nothing).wait();
  rank.world().broadcast(nothing).wait();
  const auto all = torch::empty({0, 4});
  rank.world().all_gather(all, nothing).wait();
  rank.world().barrier().wait();
}

// Sparse tensors of one shape, with as many values as each rank happens to have.
LOCKSTEP_LEGAL(legal_sparse_with_other_values, 3) {
  const auto rows = torch::arange(rank.rank() + 1).reshape({1, -1});
  const auto gradient = torch::sparse_coo_tensor(rows, torch::ones({rank.rank() + 1, 2}), {8, 2});
  rank.world().all_reduce_sparse(gradient.coalesce()).wait();
}

// What is exchanged differs from pair to pair, and is nothing at all for some.
LOCKSTEP_LEGAL(legal_uneven_all_to_all, 3) {
  // Rank i sends (i + 2 j) % 4 rows to rank j.
  comm::AllToAllOptions splits;
  std::int64_t num_sent = 0;
  std::int64_t num_received = 0;
  for (int other = 0; other < 3; ++other) {
    splits.input_splits.push_back((rank.rank() + 2 * other) % 4);
    splits.output_splits.push_back((other + 2 * rank.rank()) % 4);
    num_sent += splits.input_splits.back();
    num_received += splits.output_splits.back();
  }
  const auto tokens = torch::ones({num_sent, 4});
  const auto routed = torch::empty({num_received, 4});
  rank.world().all_to_all(routed, tokens, splits).wait();
}

// Sender and receiver see one message in shapes of their own.
LOCKSTEP_LEGAL(legal_message_in_another_shape, 2) {
  const auto message = rank.rank() == 0 ? torch::ones({4, 3}) : torch::empty({12});
  if (rank.rank() == 0) rank.world().send(message, Member::global(1)).wait();
  if (rank.rank() == 1) rank.world().receive(message, Member::global(0)).wait();
}

}  // namespace
}  // namespace lockstep::sim::gallery
