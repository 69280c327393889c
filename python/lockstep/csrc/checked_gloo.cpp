#include "checked_gloo.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "lockstep/comm/open_sockets.h"
#include "lockstep/sim/backend/group_making.h"
#include "python_caller.h"

namespace lockstep::python {
namespace {

Settings& mutable_settings() {
  static auto& settings = *new Settings;
  return settings;
}

// Of all groups so far. A socket that is closed meanwhile is told by its link.
auto& sockets_of_groups = *new std::vector<comm::Sockets>;
std::mutex sockets_mutex;

auto& live_groups = *new std::set<RemarkingGloo*>;
std::mutex live_groups_mutex;

bool any_group_is_at(RemarkingGloo::Work work) {
  const std::lock_guard lock(live_groups_mutex);
  return std::ranges::any_of(live_groups, [work](RemarkingGloo* group) { return group->is_at(work); });
}

// A day: nobody hurries the user at his debugger.
constexpr std::chrono::hours kFrozen{24};

}  // namespace

void set_settings(Settings settings) { mutable_settings() = std::move(settings); }
const Settings& settings() { return mutable_settings(); }

c10::intrusive_ptr<c10d::Work> RemarkingGloo::reduce(std::vector<at::Tensor>& tensors,
                                                     const c10d::ReduceOptions& options) {
  const auto watched = sim::rank_of_thread();
  if (watched && options.rootRank != getRank()) watched->rank->remark(sim::layout::Remark::reduce_leaves_sums);
  return ProcessGroupGloo::reduce(tensors, options);
}

void RemarkingGloo::enlist() {
  const std::lock_guard lock(live_groups_mutex);
  live_groups.insert(this);
}

RemarkingGloo::~RemarkingGloo() {
  const std::lock_guard lock(live_groups_mutex);
  live_groups.erase(this);
}

bool RemarkingGloo::is_at(Work work) {
  const std::lock_guard lock(workMutex_);
  const auto counts = [work](const auto& in_hand) {
    return in_hand.defined() && (work == Work::any || in_hand->isCompleted());
  };
  return (work == Work::any && !workQueue_.empty()) || std::ranges::any_of(workInProgress_, counts);
}

c10::intrusive_ptr<CheckedGloo> make_checked_gloo(
    const GroupRequest& request, const std::function<c10::intrusive_ptr<GlooOptions>()>& make_options) {
  const auto watched = sim::rank_for({.store = request.store,
                                      .ranks = request.ranks,
                                      .group_rank = request.rank,
                                      .world_size = request.world_size,
                                      .job = settings().job,
                                      .is_launched = settings().is_launched,
                                      .options = settings().options});
  if (settings().is_paused) watched->rank->seat().is_paused = 1;
  auto group = watched->rank->join_group(request.name, request.ranks);
  const auto before = comm::open_sockets();
  auto made = sim::meet(*watched, *group, [&] {
    const auto options = make_options();
    if (settings().is_frozen) options->timeout = kFrozen;
    return c10::make_intrusive<CheckedGloo>(sim::CallChecker(watched, group), request.store, request.rank,
                                            static_cast<int>(request.ranks.size()), options);
  });
  auto sockets = comm::sockets_opened_since(before);
  {
    const std::lock_guard lock(sockets_mutex);
    sockets_of_groups.push_back(sockets);
  }
  made->set_abort([sockets = std::move(sockets)] { comm::shut_down(sockets); });
  return made;
}

void add_backend_threads(const std::vector<std::int32_t>& tids) {
  for (const auto& watched : sim::ranks_of_process()) {
    for (const auto tid : tids) watched->rank->add_backend_thread(tid);
  }
}

void hold_ranks() {
  static auto& held = *new std::vector(sim::ranks_of_process());
  const std::lock_guard lock(sockets_mutex);
  for (const auto& sockets : sockets_of_groups) comm::keep_open(sockets);
}

void wait_until_idle() {
  const auto begin = std::chrono::steady_clock::now();
  const auto is_before = [begin](std::chrono::milliseconds limit) {
    return std::chrono::steady_clock::now() - begin < limit;
  };
  // A thread that has finished a call is held up by nothing but a busy machine.
  while ((any_group_is_at(RemarkingGloo::Work::any) && is_before(std::chrono::milliseconds(50))) ||
         (any_group_is_at(RemarkingGloo::Work::finished) && is_before(std::chrono::seconds(10)))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& watched : sim::ranks_of_process()) watched->rank->forget_futures();
}

void end_ranks(int exit_code) {
  for (const auto& watched : sim::ranks_of_process()) {
    if (exit_code == 0) {
      watched->rank->leave();
    } else {
      watched->rank->fail("exit", "it exited with code " + std::to_string(exit_code), step(), {});
    }
  }
}

void fail_rank(const std::string& kind, const std::string& message, const std::string& site, bool is_of_network) {
  for (const auto& watched : sim::ranks_of_process()) {
    // The connection was closed at its other end: why, the judge may find out in a moment.
    if (is_of_network) watched->rank->look_for_verdict_on_future();
    watched->rank->fail(kind, message, step(), {.text = site});
  }
}

}  // namespace lockstep::python
