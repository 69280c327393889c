#include "lockstep/comm/thread_group.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

// Groups on their way from the rank that made them to those that have not looked yet.
struct Joining {
  std::shared_ptr<ThreadGroup> group;
  std::size_t joined = 0;
};
std::mutex joining_mutex;
std::map<std::string, Joining> joining;

std::shared_ptr<ThreadGroup> take(const std::string& id, std::size_t size) {
  const std::lock_guard lock(joining_mutex);
  const auto found = joining.find(id);
  if (found == joining.end()) {
    throw RuntimeError({.where = "threads backend",
                        .expected = "all ranks in one process",
                        .got = "a rank that another process started",
                        .fix = "Use the gloo backend between processes."});
  }
  auto group = found->second.group;
  if (++found->second.joined == size) joining.erase(found);
  return group;
}

// "rank 1: allreduce Float[2] sum; ranks 0, 2: broadcast Float[2] from 0"
std::exception_ptr mismatch(const std::vector<int>& ranks, const std::vector<std::string>& signatures) {
  std::map<std::string, std::vector<int>> callers;
  for (std::size_t i = 0; i < ranks.size(); ++i) callers[signatures[i]].push_back(ranks[i]);
  std::vector<std::string> calls;
  for (const auto& [call, who] : callers) {
    calls.push_back(fmt::format("rank{} {}: {}", who.size() == 1 ? "" : "s", fmt::join(who, ", "), call));
  }
  return std::make_exception_ptr(CollectiveMismatch({.where = "threads backend",
                                                     .expected = "the same call on all ranks",
                                                     .got = fmt::format("{}", fmt::join(calls, "; "))}));
}

}  // namespace

ThreadWork::ThreadWork(std::vector<at::Tensor> outputs, std::chrono::milliseconds timeout)
    : outputs_(std::move(outputs)),
      timeout_(timeout),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

bool ThreadWork::wait(std::chrono::milliseconds timeout) {
  return Work::wait(timeout == kNoTimeout ? timeout_ : timeout);
}

void ThreadWork::complete(int source) {
  source_ = source;
  future_->markCompleted(c10::IValue(outputs_));
  finish();
}

void ThreadWork::fail(std::exception_ptr error) {
  future_->setError(error);
  finish(error);
}

std::shared_ptr<ThreadGroup> ThreadGroup::join(const Store& store, int rank, const std::vector<int>& ranks) {
  static std::atomic<int> next_id{0};
  constexpr auto kKey = "threads/group";
  Store keys = store;
  if (rank == 0) {
    const auto id = std::to_string(next_id++);
    {
      const std::lock_guard lock(joining_mutex);
      joining[id] = {.group = std::make_shared<ThreadGroup>(ranks)};
    }
    keys.set(kKey, id);
  }
  return take(keys.get(kKey), ranks.size());
}

bool ThreadGroup::refuse_after_abort(ThreadPart& part) const {
  if (!aborted_) return false;
  part.work->fail(aborted_);
  return true;
}

void ThreadGroup::meet(std::uint64_t sequence, int rank, const std::string& signature, ThreadPart part,
                       const Compute& compute) {
  std::unique_lock lock(mutex_);
  if (refuse_after_abort(part)) return;
  auto& meeting = meetings_[sequence];
  meeting.parts.resize(size_);
  meeting.signatures.resize(size_);
  meeting.parts[rank] = std::move(part);
  meeting.signatures[rank] = signature;
  if (++meeting.arrived < size_) return;

  auto [parts, signatures, arrived] = std::move(meeting);
  meetings_.erase(sequence);
  lock.unlock();
  std::exception_ptr error;
  if (!std::ranges::all_of(signatures, [&](const auto& other) { return other == signatures.front(); })) {
    error = mismatch(ranks_, signatures);
  } else {
    try {
      const at::NoGradGuard no_grad;
      compute(parts);
    } catch (...) {
      error = std::current_exception();
    }
  }
  for (auto& each : parts) error ? each.work->fail(error) : each.work->complete();
}

void ThreadGroup::deliver(Posted& send, Posted& receive) const {
  const auto& source = send.part.inputs.front();
  const auto& target = receive.part.outputs.front();
  if (source.scalar_type() != target.scalar_type() || source.numel() != target.numel()) {
    const auto error = std::make_exception_ptr(CollectiveMismatch(
        {.where = fmt::format("send from rank {} to rank {}, tag {}", ranks_[send.from], ranks_[send.to], send.tag),
         .expected =
             fmt::format("the {} elements of {} that are sent", source.numel(), c10::toString(source.scalar_type())),
         .got = fmt::format("a receive of {} elements of {}", target.numel(), c10::toString(target.scalar_type()))}));
    send.part.work->fail(error);
    receive.part.work->fail(error);
    return;
  }
  const at::NoGradGuard no_grad;
  target.view(-1).copy_(source.view(-1));
  send.part.work->complete();
  receive.part.work->complete(send.from);
}

// Whether a send and a receive belong together; a receive from -1 takes any sender.
bool ThreadGroup::belong_together(const Posted& send, const Posted& receive) {
  return send.to == receive.to && send.tag == receive.tag && (receive.from == -1 || receive.from == send.from);
}

// Posts `mine`, or takes out of `others` the first that belongs to it.
template <typename Belongs>
std::optional<ThreadGroup::Posted> ThreadGroup::post_or_take(Posted& mine, std::deque<Posted>& own,
                                                             std::deque<Posted>& others, const Belongs& belongs) {
  const std::lock_guard lock(mutex_);
  if (refuse_after_abort(mine.part)) return std::nullopt;
  const auto match = std::ranges::find_if(others, belongs);
  if (match == others.end()) {
    own.push_back(std::move(mine));
    return std::nullopt;
  }
  auto other = std::move(*match);
  others.erase(match);
  return other;
}

void ThreadGroup::send(int from, int to, int tag, ThreadPart part) {
  Posted send{from, to, tag, std::move(part)};
  const auto belongs = [&send](const Posted& receive) { return belong_together(send, receive); };
  if (auto receive = post_or_take(send, sends_, receives_, belongs)) deliver(send, *receive);
}

void ThreadGroup::receive(int from, int to, int tag, ThreadPart part) {
  Posted receive{from, to, tag, std::move(part)};
  const auto belongs = [&receive](const Posted& send) { return belong_together(send, receive); };
  if (auto send = post_or_take(receive, receives_, sends_, belongs)) deliver(*send, receive);
}

std::vector<int> ThreadGroup::absent(std::uint64_t sequence) const {
  const std::lock_guard lock(mutex_);
  const auto meeting = meetings_.find(sequence);
  if (meeting == meetings_.end()) return {};
  std::vector<int> absent;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!meeting->second.parts[i].work) absent.push_back(ranks_[i]);
  }
  return absent;
}

void ThreadGroup::abort(const std::string& reason) {
  std::vector<c10::intrusive_ptr<ThreadWork>> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) return;
    // No error of Lockstep's own: like a closed socket it only says that something is wrong, and the failure board why.
    aborted_ = std::make_exception_ptr(std::runtime_error(reason));
    for (const auto& [sequence, meeting] : meetings_) {
      for (const auto& part : meeting.parts) waiting.push_back(part.work);
    }
    for (const auto* queue : {&sends_, &receives_}) {
      for (const auto& posted : *queue) waiting.push_back(posted.part.work);
    }
    meetings_.clear();
    sends_.clear();
    receives_.clear();
  }
  for (const auto& work : waiting) {
    if (work) work->fail(aborted_);
  }
}

}  // namespace lockstep::comm
