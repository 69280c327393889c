// Waits for a key of the store that nobody sets, or not in time.
#include <cstdio>

#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

// Rank 0 sets "data/ready". Rank 2 waits for a key with another name.
LOCKSTEP_FAULT(store_misspelt_key, 3) {
  auto store = rank.store();
  if (rank.rank() == 0) store.set("data/ready", "yes");
  const std::string key = rank.rank() == 2 ? "data_ready" : "data/ready";
  const auto answer = store.get(key);  // verdict: rank 2 here: deadlock
  rank.world().barrier().wait();
}

// The last one to finish sets a key for all. Rank 3 has nothing to do, ends without being counted, and there is no last
// one.
LOCKSTEP_FAULT(store_counter_that_falls_short, 4) {
  auto store = rank.store();
  const auto num_files = torch::zeros({1}, torch::kLong);
  rank.world().all_reduce(num_files).wait();  // verdict: rank 3 here: deadlock
  const bool has_files = rank.rank() != 3;
  if (!has_files) return;
  if (store.add("num_done", 1) == rank.world_size()) store.set("all_done", "yes");
  store.wait({"all_done"}, store.timeout());
}

// The turn is passed on from rank to rank, each waiting for the one before it. Nobody was given the first turn.
LOCKSTEP_FAULT(store_turn_that_nobody_has, 3) {
  auto store = rank.store();
  const auto turn = store.get("turn" + std::to_string(rank.rank()));  // verdict: rank 0 here: deadlock // symmetric
  std::printf("rank %d writes\n", rank.rank());
  store.set("turn" + std::to_string((rank.rank() + 1) % rank.world_size()), "yes");
}

// Rank 0 clears the assignment after the barrier, as used up; rank 1 reads it only now.
LOCKSTEP_FAULT(store_key_that_was_erased, 3) {
  auto store = rank.store();
  if (rank.rank() == 0) store.set("assignment", "shards 0-9");
  if (rank.rank() != 1) std::printf("%s\n", store.get("assignment").c_str());
  rank.world().barrier().wait();
  if (rank.rank() == 0) store.erase("assignment");
  rank.world().barrier().wait();
  if (rank.rank() == 1) {
    const auto assignment = store.get("assignment");  // verdict: rank 1 here: deadlock
  }
  rank.world().barrier().wait();
}

// The main process waits until all have arrived before it gives the word, and the others wait for the word before they
// arrive.
LOCKSTEP_FAULT(store_word_after_the_barrier, 3) {
  auto store = rank.store();
  if (rank.rank() == 0) {
    rank.world().barrier().wait();  // verdict: rank 0 here: deadlock // symmetric
    store.set("go", "yes");
  } else {
    const auto word = store.get("go");
    rank.world().barrier().wait();
  }
}

}  // namespace
}  // namespace lockstep::sim::gallery
