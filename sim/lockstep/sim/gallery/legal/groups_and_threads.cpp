// Legal, however odd: several groups, and several threads of a rank.
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

using std::chrono::milliseconds;

// In opposite order, but nobody waits before both are posted.
LOCKSTEP_LEGAL(legal_groups_posted_in_opposite_order, 3) {
  const auto gradients = rank.world().new_group({0, 1, 2}, "gradients");
  const auto metrics = rank.world().new_group({0, 1, 2}, "metrics");
  const auto x = torch::ones({4});
  const auto y = torch::ones({6});
  for (int step = 0; step < 20; ++step) {
    if (rank.rank() == 1) {
      auto second = metrics.all_reduce(y);
      auto first = gradients.all_reduce(x);
      second.wait();
      first.wait();
    } else {
      auto first = gradients.all_reduce(x);
      auto second = metrics.all_reduce(y);
      first.wait();
      second.wait();
    }
  }
}

// A thread of each rank logs over a group of its own, while the main thread trains over the world.
LOCKSTEP_LEGAL(legal_thread_with_its_own_group, 2) {
  const auto side = rank.world().new_group({0, 1}, "side");
  std::jthread logger([&side] {
    for (int i = 0; i < 20; ++i) {
      side.all_reduce(torch::ones({4})).wait();
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  for (int step = 0; step < 5; ++step) {
    std::this_thread::sleep_for(milliseconds(40 * rank.rank()));
    rank.world().all_reduce(torch::ones({8})).wait();
  }
}

// Rank 0's main thread waits in the barrier for rank 1, and rank 1 in the side group for rank 0, where a thread will
// come that still sleeps.
LOCKSTEP_LEGAL(legal_thread_that_comes_late, 2) {
  const auto side = rank.world().new_group({0, 1}, "side");
  const auto x = torch::ones({4});
  if (rank.rank() == 0) {
    std::jthread helper([&] {
      std::this_thread::sleep_for(milliseconds(300));
      side.all_reduce(x).wait();
    });
    rank.world().barrier().wait();
  } else {
    side.all_reduce(x).wait();
    rank.world().barrier().wait();
  }
}

// The same with a thread that has called before, and computes meanwhile.
LOCKSTEP_LEGAL(legal_thread_that_computes, 2) {
  const auto side = rank.world().new_group({0, 1}, "side");
  const auto x = torch::ones({4});
  if (rank.rank() == 0) {
    std::jthread helper([&] {
      side.all_reduce(x).wait();
      const auto until = std::chrono::steady_clock::now() + milliseconds(400);
      while (std::chrono::steady_clock::now() < until) static_cast<void>(torch::ones({64, 64}).sum());
      side.all_reduce(x).wait();
    });
    rank.world().barrier().wait();
  } else {
    side.all_reduce(x).wait();
    side.all_reduce(x).wait();
    rank.world().barrier().wait();
  }
}

// Work that one thread has posted is waited for by another.
LOCKSTEP_LEGAL(legal_work_handed_to_another_thread, 2) {
  const auto x = torch::ones({4});
  for (int step = 0; step < 5; ++step) {
    auto work = rank.world().all_reduce(x);
    std::jthread waiting([&work] { work.wait(); });
    std::this_thread::sleep_for(milliseconds(20 * rank.rank()));
  }
}

// Two of four ranks talk among themselves for as long as they like.
LOCKSTEP_LEGAL(legal_group_that_only_some_use, 4) {
  const auto pair = rank.world().new_group({1, 2}, "pair");
  if (pair) {
    for (int i = 0; i < 30; ++i) {
      pair.all_reduce(torch::ones({4})).wait();
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  rank.world().barrier().wait();
}

// A group goes away at the end of its scope, and is made again under its name.
LOCKSTEP_LEGAL(legal_group_made_again, 3) {
  for (int phase = 0; phase < 3; ++phase) {
    const auto group = rank.world().new_group({0, 1, 2}, "phase");
    for (int i = 0; i <= phase; ++i) group.all_reduce(torch::ones({4 + phase})).wait();
    rank.world().barrier().wait();
  }
}

// Rows and columns of a mesh. While one row still sums, the other is in its columns.
LOCKSTEP_LEGAL(legal_rows_and_columns, 4) {
  const auto& world = rank.world();
  const auto row_groups = std::vector{world.new_group({0, 1}, "row"), world.new_group({2, 3}, "row")};
  const auto column_groups = std::vector{world.new_group({0, 2}, "column"), world.new_group({1, 3}, "column")};
  const auto& row = row_groups[static_cast<std::size_t>(rank.rank() / 2)];
  const auto& column = column_groups[static_cast<std::size_t>(rank.rank() % 2)];
  for (int step = 0; step < 5; ++step) {
    if (rank.rank() / 2 == step % 2) std::this_thread::sleep_for(milliseconds(60));
    row.all_reduce(torch::ones({4})).wait();
    auto gradients = column.all_reduce(torch::ones({2, 2}));
    row.broadcast(torch::ones({3}), {.root = Member::group(0)}).wait();
    gradients.wait();
  }
}

// A pipeline: every rank makes other calls, and no two of them alike.
LOCKSTEP_LEGAL(legal_pipeline, 4) {
  const bool is_first = rank.rank() == 0;
  const bool is_last = rank.rank() == 3;
  std::vector<comm::Work> sends;
  const auto activations = torch::ones({8});
  for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
    if (!is_first) rank.world().receive(activations, Member::global(rank.rank() - 1)).wait();
    std::this_thread::sleep_for(milliseconds(20));
    if (!is_last) sends.push_back(rank.world().send(activations.clone(), Member::global(rank.rank() + 1)));
  }
  for (auto& send : sends) send.wait();
}

// A group may count its members in another order than the world; the root is named in either way.
LOCKSTEP_LEGAL(legal_group_in_another_order, 3) {
  const auto group = rank.world().new_group({2, 0, 1}, "turned");
  const auto x = torch::ones({4});
  group.broadcast(x, {.root = rank.rank() == 1 ? Member::global(2) : Member::group(0)}).wait();
  group.reduce(x, {.root = rank.rank() == 1 ? Member::group(1) : Member::global(0)}).wait();
}

// A rank may talk to itself: what it calls there is complete at once.
LOCKSTEP_LEGAL(legal_groups_of_one, 3) {
  std::vector<comm::ProcessGroup> alone;
  for (int member = 0; member < 3; ++member) {
    alone.push_back(rank.world().new_group({member}, "alone" + std::to_string(member)));
  }
  const auto& mine = alone[static_cast<std::size_t>(rank.rank())];
  for (int i = 0; i <= rank.rank() * 3; ++i) mine.all_reduce(torch::ones({4 + i})).wait();
  rank.world().barrier().wait();
}

// A thread of rank 0 compresses a checkpoint by another program, and tells the others by the store when that is done.
LOCKSTEP_LEGAL(legal_thread_that_waits_for_a_program, 3) {
  if (rank.rank() != 0) static_cast<void>(rank.store().get("checkpoint"));
  std::jthread saver;
  if (rank.rank() == 0) {
    saver = std::jthread([store = rank.store()]() mutable {
      if (std::system("sleep 0.8") == 0) store.set("checkpoint", "there");
    });
  }
  rank.world().barrier().wait();
}

// The same with a thread that wakes up by a time-out of its own.
LOCKSTEP_LEGAL(legal_thread_that_times_out, 3) {
  if (rank.rank() != 0) static_cast<void>(rank.store().get("checkpoint"));
  std::jthread saver;
  if (rank.rank() == 0) {
    saver = std::jthread([store = rank.store()]() mutable {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable().wait_for(lock, milliseconds(800));
      store.set("checkpoint", "there");
    });
  }
  rank.world().barrier().wait();
}

// Rank 1 looks for a command, and does without one.
LOCKSTEP_LEGAL(legal_wait_that_gives_up, 2) {
  for (int attempt = 0; rank.rank() == 1 && attempt < 3; ++attempt) {
    try {
      rank.store().wait({"command"}, milliseconds(400));
    } catch (const Timeout&) {  // there is none
    }
  }
  rank.world().barrier().wait();
}

}  // namespace
}  // namespace lockstep::sim::gallery
