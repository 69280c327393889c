#include "lockstep/sim/world/job_front.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "lockstep/base/error.h"
#include "lockstep/sim/world/guardian_channel.h"
#include "lockstep/sim/world/terminal.h"
#include "lockstep/sim/world/verdicts.h"

namespace lockstep::sim {

JobFront::JobFront(const LaunchOptions& options, std::string job, launch::Descriptor channel,
                   std::vector<RankStreams> streams)
    : options_(&options),
      job_(std::move(job)),
      group_at_terminal_(group_at_terminal()),
      other_children_(children_of_this_process()),
      to_guardian_(fcntl(channel.number(), F_DUPFD_CLOEXEC, 0)),
      messages_(std::move(channel), [this](std::string_view lines) { take_messages(lines); }),
      signals_(launch::CaughtSignals::Afterwards::forget, to_guardian_.number()) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const bool is_read = static_cast<bool>(streams[i].output);
    readers_.push_back(
        is_read ? std::make_unique<RankReader>(static_cast<int>(i), options, std::move(streams[i]), user_) : nullptr);
  }
}

void JobFront::close_in_child() {
  to_guardian_.reset();
  messages_ = launch::PipeLines(launch::Descriptor());
  readers_.clear();
}

LaunchResult JobFront::watch(pid_t guardian, const JobViewFactory& make_view) {
  while (messages_.descriptor() >= 0) turn();
  int status = 0;
  while (waitpid(guardian, &status, 0) < 0 && errno == EINTR) continue;
  if (options_->gdb_rank && group_at_terminal_) give_terminal_to(*group_at_terminal_);
  const bool is_done = last_message_.is_object();
  const auto instead = is_done ? VerdictJson() : end_in_place_of(guardian, status, make_view);
  for (const auto& reader : readers_) {
    if (reader) reader->finish();
  }
  if (!is_done) return result_of(instead, VerdictJson::array());
  if (last_message_.contains("usage")) throw InvalidArgument(last_message_["usage"].get<std::string>());
  if (last_message_.contains("error")) throw RuntimeError(last_message_["error"].get<std::string>());
  const auto& result = last_message_["result"];
  return result_of(result["verdict"], result["ranks"]);
}

void JobFront::turn() {
  std::vector<pollfd> waiting = {{.fd = messages_.descriptor(), .events = POLLIN}};
  for (const auto& reader : readers_) {
    if (reader) reader->add_to(waiting);
  }
  if (waits_for_enter_) waiting.push_back({.fd = STDIN_FILENO, .events = POLLIN});
  if (poll(waiting.data(), waiting.size(), -1) < 0) return;  // a signal, which the guardian has been told of
  for (const auto& reader : readers_) {
    if (reader) reader->read_available();
  }
  if (waits_for_enter_ && waiting.back().revents != 0) take_input();
  messages_.read_available();
}

void JobFront::take_messages(std::string_view lines) {
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    auto message = VerdictJson::parse(lines.substr(0, end), nullptr, /*allow_exceptions=*/false);
    lines.remove_prefix(std::min(end, lines.size() - 1) + 1);
    if (!message.is_object()) continue;  // the guardian was killed in the middle of it
    const bool is_hold = message.contains("hold");
    if (!is_hold && !message.contains("tell")) {
      last_message_ = std::move(message);
      continue;
    }
    if (options_->tell) options_->tell(message[is_hold ? "hold" : "tell"].get<std::string>());
    waits_for_enter_ = waits_for_enter_ || is_hold;
  }
}

void JobFront::take_input() {
  std::array<char, 256> typed{};
  const auto count = read(STDIN_FILENO, typed.data(), typed.size());
  if (count < 0 && errno == EINTR) return;
  const bool is_enter =
      count > 0 && std::string_view(typed.data(), static_cast<std::size_t>(count)).find('\n') != std::string_view::npos;
  if (is_enter) send(to_guardian_.number(), &kGoOn, 1, MSG_NOSIGNAL);
  if (is_enter || count <= 0) waits_for_enter_ = false;  // nothing more can come: Ctrl-C is what is left
}

// The ranks died with the guardian. What they had started is ours by now.
VerdictJson JobFront::end_in_place_of(pid_t guardian, int status, const JobViewFactory& make_view) {
  end_descendants(other_children_);
  make_view(job_)->remove_names();
  remove_shared_memory_of(job_);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : SIGKILL;
  auto verdict = interrupted_verdict(signal, VerdictJson::array());
  verdict["cause"] =
      "the guardian of the ranks, process " + std::to_string(guardian) + ", " + to_text(RankEnd{.signal = signal});
  return verdict;
}

LaunchResult JobFront::result_of(VerdictJson verdict, const VerdictJson& ranks) const {
  LaunchResult result{.exit_code = exit_code_of(verdict)};
  for (const auto& rank : ranks) {
    result.ranks.push_back({.rank = rank["rank"],
                            .pid = rank["pid"],
                            .exit_code = rank["exit_code"],
                            .signal = rank["signal"],
                            .wall_s = rank["wall_s"]});
    const auto& reader = readers_[result.ranks.back().rank];
    if (reader) result.ranks.back().log = reader->log();
  }
  const int first =
      verdict.contains("first") && verdict["first"].is_number_integer() ? verdict["first"].get<int>() : -1;
  const bool is_ours = options_->num_ranks && first >= 0 && first < *options_->num_ranks;
  if (verdict.value("verdict", "") == "rank_failed" && is_ours && readers_[first]) {
    rank_in(verdict, first, "failed")["stderr"] = readers_[first]->last_errors();
  }
  if (verdict.contains("since_stall_s") && verdict["since_stall_s"].is_number()) {
    result.stall_to_verdict_s = verdict["since_stall_s"].get<double>();
  }
  result.verdict = verdict.dump(-1, ' ', false, VerdictJson::error_handler_t::replace);
  return result;
}

}  // namespace lockstep::sim
