// The checked backend as a plug-in (comm/backend_plugin.h): it links neither of Lockstep's libraries, so that whoever
// can load a backend can have it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "lockstep/comm/backend_plugin.h"
#include "lockstep/sim/backend/checked_operations.h"
#include "lockstep/sim/backend/cpp_caller.h"
#include "lockstep/sim/backend/group_making.h"
#include "lockstep/sim/backend/key_wait.h"
#include "lockstep/sim/place/resolve_from_files.h"

namespace {

using namespace lockstep::sim;
using Json = nlohmann::json;

using CheckedBackend = CheckedOperations<lockstep::comm::ForwardingBackend>;
using MakeInner = int (*)(void*, c10::intrusive_ptr<c10d::Backend>*);

CheckOptions options_from(const Json& json) {
  auto options = CheckOptions::with_level(json.value("level", "full"));
  const auto spec = json.value("spec", Json::object());
  options.strict_places = spec.value("strict_places", false);
  options.hold = spec.value("hold", false);
  options.stall_s = spec.value("stall_s", 0.0);
  return options;
}

void write_reason(char* to, std::size_t size, std::string_view reason) {
  if (size == 0) return;
  const auto length = std::min(reason.size(), size - 1);
  std::copy_n(reason.begin(), length, to);
  to[length] = '\0';
}

int wrap(const c10::intrusive_ptr<c10d::Store>* store, int rank, int size, const char* options_json,
         MakeInner make_inner, void* context, c10::intrusive_ptr<c10d::Backend>* out, char* error,
         std::size_t error_size) {
  try {
    const auto json = Json::parse(options_json);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    if (json.contains("ranks")) ranks = json["ranks"].get<std::vector<int>>();
    const auto watched = rank_for({.store = *store,
                                   .ranks = ranks,
                                   .group_rank = rank,
                                   .world_size = json.value("world_size", 0),
                                   .job = json.value("job", "by-hand"),
                                   .is_launched = json.value("spec", Json::object()).value("launched", false),
                                   .options = options_from(json),
                                   .module_table = modules_of_process(),
                                   .resolve = resolve_from_files()});
    auto group = watched->rank->join_group(json.value("group", "world"), ranks);
    c10::intrusive_ptr<c10d::Backend> inner;
    const bool is_made = meet(*watched, *group, [&] { return make_inner(context, &inner) == 0; });
    if (!is_made) return 1;  // whose reason make_inner's owner knows
    auto made = c10::make_intrusive<CheckedBackend>(CallChecker(watched, std::move(group)), inner);
    made->set_abort([inner] { inner->abort(); });
    *out = std::move(made);
    return 0;
  } catch (const std::exception& failure) {
    write_reason(error, error_size, failure.what());
    return 1;
  }
}

void set_call(const lockstep_call_v1* call) {
  next_call = {};
  if (call == nullptr) return;
  next_call = {.context = {.step = call->step,
                           .micro_step = call->micro_step,
                           .phase = static_cast<std::uint8_t>(call->phase),
                           .label = call->label == nullptr ? "" : call->label},
               .inputs = call->inputs,
               .num_inputs = call->num_inputs};
}

// Exceptions do not cross the plug-in's functions; what fails here leaves the program as it is, only less watched.
template <typename Call>
void guarded(Call&& call) noexcept {
  try {
    call();
  } catch (const std::exception&) {
  }
}

// A thread waits for one key at a time; the scope lives until the wait is said to be over.
thread_local std::optional<KeyWait> wait_for_key_scope;

void wait_for_key(const char* key) {
  guarded([key] {
    wait_for_key_scope.reset();
    if (key != nullptr) wait_for_key_scope.emplace(key);
  });
}

void fail(const char* kind, const char* message, std::int64_t step) {
  guarded([&] {
    if (const auto watched = rank_of_thread()) watched->rank->fail(kind, message, step, {});
  });
}

void leave() {
  guarded([] {
    if (const auto watched = rank_of_thread()) watched->rank->leave();
  });
}

void await_verdict() {
  guarded([] {
    if (const auto watched = rank_of_thread()) watched->rank->look_for_verdict_on_future();
  });
}

std::size_t verdict(char* json, std::size_t size) {
  std::size_t length = 0;
  guarded([&] {
    const auto watched = rank_of_thread();
    if (!watched || watched->rank->options().hold) return;
    const auto text = watched->rank->board().verdict();
    if (!text) return;
    std::copy_n(text->begin(), std::min(size, text->size()), json);
    length = text->size();
  });
  return length;
}

constexpr lockstep_watcher_v1 kWatcher = {.wrap = wrap,
                                          .set_call = set_call,
                                          .wait_for_key = wait_for_key,
                                          .fail = fail,
                                          .leave = leave,
                                          .await_verdict = await_verdict,
                                          .verdict = verdict};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* lockstep_backend_abi_v1() { return LOCKSTEP_BACKEND_ABI; }

__attribute__((visibility("default"))) const lockstep_watcher_v1* lockstep_backend_watcher_v1() { return &kWatcher; }

__attribute__((visibility("default"))) int lockstep_backend_create_v1(const c10::intrusive_ptr<c10d::Store>*, int, int,
                                                                      const char*, c10::intrusive_ptr<c10d::Backend>*,
                                                                      char* error, std::size_t error_size) {
  write_reason(error, error_size,
               "the checked backend watches over another one: make it with the wrap function of "
               "lockstep_backend_watcher_v1");
  return 1;
}

}  // extern "C"
