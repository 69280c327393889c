#include "lockstep/sim/backend/process_ranks.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/sim/check/board_view.h"
#include "lockstep/sim/check/verdict_document.h"

namespace lockstep::sim {
namespace {

std::mutex mutex;
// By the store at which the world met, and the rank in it; stores of groups are prefixes of that one. Never destroyed:
// a rank that exits tells so after this library's objects are gone.
auto& ranks = *new std::map<std::pair<const c10d::Store*, int>, std::weak_ptr<WatchedRank>>;
thread_local std::weak_ptr<WatchedRank> of_thread;

c10::intrusive_ptr<c10d::Store> base_of(const c10::intrusive_ptr<c10d::Store>& store) {
  const auto prefixed = c10::dynamic_intrusive_pointer_cast<c10d::PrefixStore>(store);
  return prefixed ? prefixed->getUnderlyingNonPrefixStore() : store;
}

// Who has the same id shares memory and process numbers: containers of one host may share neither.
std::string host_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  for (const char* shared : {"/dev/shm", "/proc/self/ns/pid"}) {
    struct stat status {};
    if (stat(shared, &status) == 0) id += "-" + std::to_string(status.st_dev) + "-" + std::to_string(status.st_ino);
  }
  return id;
}

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

// The ranks of a host find one board: whoever offers a name first. The others drop the one that they made.
std::shared_ptr<Board> agree_on_board(c10d::Store& store, const std::string& job, int world_size) {
  auto offered = Board::create(job, world_size);
  std::string name;
  try {
    const auto agreed = store.compareSet("lockstep/board/" + host_id(), {}, bytes(offered->name()));
    name.assign(agreed.begin(), agreed.end());
  } catch (const std::exception&) {
    Board::remove_name(offered->name());
    throw;
  }
  if (name == offered->name()) return offered;
  Board::remove_name(offered->name());
  return Board::open(name);
}

// Without a launcher, whoever reached the verdict says so; the launcher would do it for all.
void print_report(const std::string& verdict) { std::cerr << "lockstep: " + cause_of(verdict) + "\n"; }

}  // namespace

WatchedRank::~WatchedRank() {
  monitor.reset();
  // Where not all have joined: nobody else will remove it.
  if (rank && !is_launched) Board::remove_name(rank->board().name());
}

std::shared_ptr<WatchedRank> rank_for(const RankRequest& request) {
  const auto store = base_of(request.store);
  const int rank = request.ranks[static_cast<std::size_t>(request.group_rank)];
  const std::pair key(store.get(), rank);
  std::unique_lock lock(mutex);
  if (auto known = ranks[key].lock()) {
    of_thread = known;
    return known;
  }
  lock.unlock();  // the store may take its time
  const int world_size = std::max(request.world_size, 1 + *std::ranges::max_element(request.ranks));
  auto board = agree_on_board(*request.store, request.job, world_size);
  auto made = std::make_shared<WatchedRank>();
  made->store = store;
  made->rank = CheckedRank::join(std::move(board), rank, request.options, request.module_table,
                                 {.resolve = request.resolve, .report = request.is_launched ? nullptr : print_report});
  made->is_launched = request.is_launched;
  // Once all are there nobody opens it by name any more, and nothing can be left behind.
  const auto& joined = made->rank->board();
  if (!request.is_launched && joined.header().num_joined == static_cast<std::uint32_t>(world_size)) {
    Board::remove_name(joined.name());
  }
  made->monitor = std::make_unique<Monitor>(made->rank);
  lock.lock();
  ranks[key] = made;
  of_thread = made;
  return made;
}

void tell_of_other_hosts(const WatchedRank& watched, const std::vector<int>& group) {
  auto& board = watched.rank->board();
  const auto is_here = [&board](int rank) { return board.seat(rank).life != layout::Life::absent; };
  if (std::ranges::all_of(group, is_here)) return;
  const auto bit = static_cast<std::uint32_t>(layout::Remark::ranks_elsewhere);
  const bool is_news = (watched.rank->seat().remarks & bit) == 0;
  watched.rank->remark(layout::Remark::ranks_elsewhere);
  if (is_news && *std::ranges::find_if(group, is_here) == watched.rank->rank())
    std::cerr << "lockstep: " << kRanksElsewhere << '\n';
}

std::vector<std::shared_ptr<WatchedRank>> ranks_of_process() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<WatchedRank>> alive;
  for (const auto& [key, weak] : ranks) {
    if (auto rank = weak.lock()) alive.push_back(std::move(rank));
  }
  return alive;
}

std::shared_ptr<WatchedRank> rank_of_thread() {
  if (auto rank = of_thread.lock()) return rank;
  const auto alive = ranks_of_process();
  return alive.size() == 1 ? alive.front() : nullptr;  // of several, this thread made a group of none
}

}  // namespace lockstep::sim
