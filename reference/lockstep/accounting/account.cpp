#include "lockstep/accounting/account.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "lockstep/base/error.h"

namespace lockstep::accounting {

void Traffic::add(const TrafficKey& key, const TrafficCount& count) {
  auto& sum = counts_[key];
  sum.calls += count.calls;
  sum.elements += count.elements;
  sum.bytes += count.bytes;
}

TrafficCount Traffic::total(const std::string& op) const {
  TrafficCount sum;
  for (const auto& [key, count] : counts_) {
    if (!op.empty() && key.op != op) continue;
    sum.calls += count.calls;
    sum.elements += count.elements;
    sum.bytes += count.bytes;
  }
  return sum;
}

std::int64_t Traffic::volume() const {
  std::int64_t elements = 0;
  for (const auto& [key, count] : counts_) elements += (key.op == "allreduce" ? 2 : 1) * count.elements;
  return elements;
}

Traffic Traffic::since(const Traffic& before) const {
  Traffic difference;
  for (const auto& [key, count] : counts_) {
    const auto old = before.counts_.find(key);
    const auto base = old == before.counts_.end() ? TrafficCount{} : old->second;
    const TrafficCount added{count.calls - base.calls, count.elements - base.elements, count.bytes - base.bytes};
    if (added.calls != 0) difference.add(key, added);
  }
  return difference;
}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (end_) end_();
  end_ = std::exchange(other.end_, nullptr);
  return *this;
}

Subscription::~Subscription() {
  if (end_) end_();
}

void Account::record(const TrafficKey& key, const TrafficCount& count) {
  const std::lock_guard lock(mutex_);
  traffic_.add(key, count);
}

Subscription Account::subscribe(Observer observer) {
  const std::lock_guard lock(mutex_);
  const int id = next_observer_++;
  observers_.emplace(id, std::move(observer));
  num_observers_ = static_cast<int>(observers_.size());
  return Subscription([self = self_, id] {
    Account* account = *self;
    if (account == nullptr) return;
    const std::lock_guard lock(account->mutex_);
    account->observers_.erase(id);
    account->num_observers_ = static_cast<int>(account->observers_.size());
  });
}

void Account::deliver(const Event& event) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, observer] : observers_) observer(stamp_, event);
}

Traffic Account::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

Stamp Account::stamp() const {
  const std::lock_guard lock(mutex_);
  return stamp_;
}

void Account::set_phase(Phase phase) {
  const std::lock_guard lock(mutex_);
  stamp_.phase = phase;
  phase_.store(phase, std::memory_order_relaxed);
}

void Account::begin_micro_step() {
  const std::lock_guard lock(mutex_);
  ++stamp_.micro_step;
}

void Account::end_step() {
  const std::lock_guard lock(mutex_);
  ++stamp_.step;
  stamp_.micro_step = 0;
}

Subscription write_json_lines(Account& account, const std::string& path) {
  auto file = std::make_shared<std::ofstream>(path, std::ios::app);
  if (!*file) {
    throw FileError({.where = "event stream",
                     .expected = "to open '" + path + "' for appending",
                     .got = std::strerror(errno),
                     .fix = "Set LOCKSTEP_TRACE_DIR to an existing folder that this process may write."});
  }
  return account.subscribe([file](const Stamp& stamp, const Event& event) {
    *file << to_json_line(stamp, event) << '\n' << std::flush;  // flushed, so that a crash loses nothing
  });
}

}  // namespace lockstep::accounting
