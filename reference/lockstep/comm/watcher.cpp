#include "lockstep/comm/watcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/comm/backend_plugin.h"

namespace lockstep::comm {
namespace {

std::atomic<const lockstep_watcher_v1*> the_watcher{nullptr};

std::optional<nlohmann::json> verdict_of(const lockstep_watcher_v1& watcher) {
  std::size_t size = watcher.verdict(nullptr, 0);
  if (size == 0) return std::nullopt;
  std::string text(size, '\0');
  watcher.verdict(text.data(), text.size());
  auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

std::string state_of(const nlohmann::json& verdict, int rank) {
  for (const auto& standing : verdict.value("ranks", nlohmann::json::array())) {
    if (standing.value("rank", -1) == rank) return standing.value("state", "");
  }
  return "";
}

// Why the verdict's first rank failed, in its own words.
std::string reason_of(const nlohmann::json& verdict, int rank) {
  for (const auto& standing : verdict.value("ranks", nlohmann::json::array())) {
    if (standing.value("rank", -1) == rank && standing.contains("message")) {
      return standing.value("kind", "") + ": " + standing.value("message", "");
    }
  }
  return verdict.value("cause", "");
}

}  // namespace

void set_watcher(const lockstep_watcher_v1* watcher) noexcept {
  const lockstep_watcher_v1* none = nullptr;
  the_watcher.compare_exchange_strong(none, watcher);
}

const lockstep_watcher_v1* watcher() noexcept { return the_watcher.load(std::memory_order_acquire); }

WatchedCall::WatchedCall(const GroupContext& group, const std::vector<at::Tensor>& inputs) : watcher_(watcher()) {
  if (watcher_ == nullptr) return;
  const auto stamp = group.account->stamp();
  const auto label =
      inputs.empty() ? accounting::TensorLabel{} : group.account->labels().find(inputs.front().const_data_ptr());
  label_ = fmt::format("{}", fmt::join(label.names, "\n"));
  const lockstep_call_v1 call{.step = stamp.step,
                              .micro_step = static_cast<std::int32_t>(stamp.micro_step),
                              .phase = static_cast<std::int32_t>(stamp.phase),
                              .label = label_.c_str(),
                              .inputs = inputs.data(),
                              .num_inputs = inputs.size()};
  watcher_->set_call(&call);
}

WatchedCall::~WatchedCall() {
  if (watcher_ != nullptr) watcher_->set_call(nullptr);
}

WatchedKeyWait::WatchedKeyWait(const std::string& key) : watcher_(watcher()) {
  if (watcher_ != nullptr) watcher_->wait_for_key(key.c_str());
}

WatchedKeyWait::~WatchedKeyWait() {
  if (watcher_ != nullptr) watcher_->wait_for_key(nullptr);
}

void await_verdict() noexcept {
  if (const auto* watching = watcher()) watching->await_verdict();
}

void throw_verdict() {
  const auto* watching = watcher();
  if (watching == nullptr) return;
  const auto verdict = verdict_of(*watching);
  if (!verdict) return;
  const auto kind = verdict->value("verdict", "");
  const auto cause = verdict->value("cause", "");
  const int first = verdict->value("first", -1);
  if (kind == "mismatch") throw CollectiveMismatch(cause);
  if (kind == "deadlock") {
    // Nobody waits in a circle where a rank has ended: the others have lost it.
    if (state_of(*verdict, first) == "ended")
      throw RankLost(first, "exited with code 0 while others were at work", cause);
    throw Deadlock(cause);
  }
  if (kind == "rank_failed") throw RankLost(first, reason_of(*verdict, first), "the checked backend");
  throw Timeout(kind + ": " + cause);
}

void tell_watcher_of_end() noexcept {
  if (const auto* watching = watcher()) watching->leave();
}

void tell_watcher_of_failure(const std::string& kind, const std::string& message, std::int64_t step) noexcept {
  if (const auto* watching = watcher()) watching->fail(kind.c_str(), message.c_str(), step);
}

}  // namespace lockstep::comm
