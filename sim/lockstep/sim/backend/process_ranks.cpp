#include "lockstep/sim/backend/process_ranks.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "lockstep/sim/check/verdict_document.h"
#include "lockstep/sim/place/module_table.h"
#include "lockstep/sim/place/own_modules.h"
#include "lockstep/sim/place/resolve_from_files.h"

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
  refresh_modules();
  const int world_size = std::max(request.world_size, 1 + *std::ranges::max_element(request.ranks));
  auto board = agree_on_board(*request.store, request.job, world_size);
  auto made = std::make_shared<WatchedRank>();
  made->store = store;
  const auto module_table = own_module_table();
  made->modules = ModuleTable::parse(module_table);
  made->rank =
      CheckedRank::join(std::move(board), rank, request.options, module_table,
                        {.resolve = resolve_from_files(), .report = request.is_launched ? nullptr : print_report});
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

std::uint64_t WatchedRank::place_hash(const Frames& frames) const {
  if (frames.count == 0) return 0;
  const auto address = modules.find(frames.addresses[0]);
  if (!address || address->module == nullptr) return 0;
  return mix(mix(0, address->module->path), address->file_offset) | 1;
}

std::shared_ptr<WatchedRank> rank_of_thread() {
  if (auto rank = of_thread.lock()) return rank;
  const std::lock_guard lock(mutex);
  std::shared_ptr<WatchedRank> only;
  for (const auto& [key, weak] : ranks) {
    if (auto rank = weak.lock()) {
      if (only) return nullptr;  // several, and this thread made a group of none
      only = std::move(rank);
    }
  }
  return only;
}

}  // namespace lockstep::sim
