// Sends and receives that do not find each other, or find what they did not expect.
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

Member next(const Rank& rank) { return Member::global((rank.rank() + 1) % rank.world_size()); }
Member previous(const Rank& rank) { return Member::global((rank.rank() + rank.world_size() - 1) % rank.world_size()); }

// Each rank passes on what it gets. Nobody begins.
LOCKSTEP_FAULT(p2p_ring_receives_first, 3) {
  const auto token = torch::ones({4});
  rank.world().receive(token, previous(rank)).wait();  // verdict: rank 0 here: deadlock // symmetric
  rank.world().send(token, next(rank)).wait();
}

// Here everybody begins, and a send lasts until somebody receives. On a backend that keeps small messages this works,
// until they grow.
LOCKSTEP_FAULT(p2p_ring_sends_first, 3) {
  const auto mine = torch::ones({4});
  const auto theirs = torch::empty({4});
  rank.world().send(mine, next(rank)).wait();  // verdict: rank 0 here: deadlock // symmetric
  rank.world().receive(theirs, previous(rank)).wait();
}

// The tag is the micro-batch; rank 1 counts them from 1.
LOCKSTEP_FAULT(p2p_tags_counted_from_1, 3) {
  std::vector<comm::Work> sends;
  const auto activations = torch::ones({8});
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    if (rank.rank() == 0) sends.push_back(rank.world().send(activations, next(rank), {.tag = micro_batch}));
    if (rank.rank() == 1) {
      const comm::PointToPointOptions options{.tag = micro_batch + 1};
      rank.world().receive(activations, previous(rank), options).wait();  // verdict: rank 1 here: deadlock
    }
  }
  rank.world().barrier().wait();
  for (auto& send : sends) send.wait();
}

// A pipeline of four stages. The last one takes its input from rank 1, as it did when there were three.
LOCKSTEP_FAULT(p2p_from_another_rank, 4) {
  std::vector<comm::Work> sends;
  const auto activations = torch::ones({8});
  if (rank.rank() > 0) {
    const auto source = rank.rank() == 3 ? Member::global(1) : previous(rank);
    rank.world().receive(activations, source).wait();  // verdict: rank 3 here: deadlock
  }
  if (rank.rank() < 3) sends.push_back(rank.world().send(activations, next(rank)));
  rank.world().barrier().wait();
  for (auto& send : sends) send.wait();
}

// The sender's last micro-batch is a short one, and the receiver has room for a full one. Two ends, and nothing tells
// which of them is wrong.
LOCKSTEP_FAULT(p2p_another_size, 3) {
  const auto activations = torch::ones({rank.rank() == 0 ? 3 : 4, 8});
  if (rank.rank() == 0) rank.world().send(activations, next(rank)).wait();
  if (rank.rank() == 1) {
    rank.world().receive(activations, previous(rank)).wait();  // verdict: rank 1 here: mismatch // symmetric
  }
  rank.world().barrier().wait();
}

// Half precision on one side: half as many bytes as the other side waits for.
LOCKSTEP_FAULT(p2p_another_dtype, 3) {
  if (rank.rank() == 1) rank.world().send(torch::ones({4}, torch::kHalf), next(rank)).wait();
  if (rank.rank() == 2) {
    const auto gradient = torch::empty({4});
    rank.world().receive(gradient, previous(rank)).wait();  // verdict: rank 2 here: mismatch // symmetric
  }
  rank.world().barrier().wait();
}

// Two messages under one tag arrive in the order in which they were sent.
LOCKSTEP_FAULT(p2p_two_messages_in_another_order, 2) {
  const auto mean = torch::ones({4});
  const auto covariance = torch::ones({4, 4});
  if (rank.rank() == 0) {
    auto first = rank.world().send(mean, next(rank));
    auto second = rank.world().send(covariance, next(rank));
    first.wait();
    second.wait();
  } else {
    rank.world().receive(covariance, previous(rank)).wait();  // verdict: rank 1 here: mismatch // symmetric
    rank.world().receive(mean, previous(rank)).wait();
  }
}

// Rank 1 expects four micro-batches, rank 0 has made three of its data.
LOCKSTEP_FAULT(p2p_one_message_too_few, 3) {
  const auto activations = torch::ones({8});
  const int num_micro_batches = rank.rank() == 1 ? 4 : 3;
  for (int i = 0; i < num_micro_batches; ++i) {
    if (rank.rank() == 0) rank.world().send(activations, next(rank)).wait();
    if (rank.rank() == 1) {
      rank.world().receive(activations, previous(rank)).wait();  // verdict: rank 1 here: deadlock
    }
  }
  rank.world().barrier().wait();
}

// Rank 0 collects one result from every other rank, in whatever order they come, and counts itself among them.
LOCKSTEP_FAULT(p2p_one_sender_too_few, 3) {
  const auto result = torch::ones({2});
  if (rank.rank() == 0) {
    for (int i = 0; i < rank.world_size(); ++i) {
      rank.world().receive_from_any(result).wait();  // verdict: rank 0 here: deadlock
    }
  } else {
    rank.world().send(result, Member::global(0)).wait();
  }
  rank.world().barrier().wait();
}

// Rank 1 reports to rank 2, which does not expect a report.
LOCKSTEP_FAULT(p2p_nobody_receives, 3) {
  const auto report = torch::ones({16});
  if (rank.rank() == 1) {
    rank.world().send(report, next(rank)).wait();  // verdict: rank 1 here: deadlock
  }
  rank.world().barrier().wait();
}

}  // namespace
}  // namespace lockstep::sim::gallery
