#include "checked_gloo.h"

#include <algorithm>
#include <mutex>
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

// All groups so far. A socket that is closed meanwhile is told by its link.
struct MadeGroup {
  c10::weak_intrusive_ptr<CheckedGloo> group;
  comm::Sockets sockets;
};
auto& made_groups = *new std::vector<MadeGroup>;
std::mutex made_groups_mutex;

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

bool RemarkingGloo::is_idle() {
  const std::lock_guard lock(workMutex_);
  return workQueue_.empty() && std::ranges::none_of(workInProgress_, [](const auto& work) { return work.defined(); });
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
    const std::lock_guard lock(made_groups_mutex);
    std::erase_if(made_groups, [](const MadeGroup& other) { return other.group.expired(); });
    made_groups.push_back({c10::weak_intrusive_ptr<CheckedGloo>(made), sockets});
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
  const std::lock_guard lock(made_groups_mutex);
  for (const auto& made : made_groups) comm::keep_open(made.sockets);
}

void wait_until_idle(std::chrono::milliseconds at_most) {
  const auto is_idle = [](const MadeGroup& made) {
    const auto group = made.group.lock();
    return !group || group->is_idle();
  };
  const std::lock_guard lock(made_groups_mutex);
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!std::ranges::all_of(made_groups, is_idle) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
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
