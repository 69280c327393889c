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
namespace {

constexpr int kTickMs = 20;
constexpr auto kSilenceLasts = std::chrono::milliseconds(150);
constexpr auto kLongestWait = std::chrono::seconds(1);

}  // namespace

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
    readers_.push_back(is_read ? std::make_unique<RankReader>(static_cast<int>(i), options, std::move(streams[i]),
                                                              user_, [this] { return holds_back(); })
                               : nullptr);
  }
}

void JobFront::close_in_child() {
  to_guardian_.reset();
  messages_ = launch::PipeLines(launch::Descriptor());
  readers_.clear();
}

LaunchResult JobFront::watch(pid_t guardian, const JobViewFactory& make_view) {
  view_ = make_view(job_);
  while (messages_.descriptor() >= 0) turn();
  int status = 0;
  while (waitpid(guardian, &status, 0) < 0 && errno == EINTR) continue;
  if (options_->debugged && group_at_terminal_) give_terminal_to(*group_at_terminal_);
  const bool is_done = last_message_.is_object();
  const auto instead = is_done ? VerdictJson() : end_in_place_of(guardian, status);
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
  const auto num_others = waiting.size();
  if (waits_for_enter_) waiting.push_back({.fd = STDIN_FILENO, .events = POLLIN});
  const int patience_ms = silence_asked_ ? kTickMs : -1;
  if (poll(waiting.data(), waiting.size(), patience_ms) < 0) return;  // a signal, which the guardian has been told of
  for (const auto& reader : readers_) {
    if (reader) reader->read_available();
  }
  if (waits_for_enter_ && waiting.back().revents != 0) take_input();
  if (silence_asked_) {
    tell_of_silence(std::any_of(waiting.begin() + 1, waiting.begin() + static_cast<std::ptrdiff_t>(num_others),
                                [](const pollfd& rank) { return (rank.revents & POLLIN) != 0; }));
  }
  messages_.read_available();
}

void JobFront::take_messages(std::string_view lines) {
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    auto message = VerdictJson::parse(lines.substr(0, end), nullptr, /*allow_exceptions=*/false);
    lines.remove_prefix(std::min(end, lines.size() - 1) + 1);
    if (!message.is_object()) continue;  // the guardian was killed in the middle of it
    if (message.contains("await_silence")) {
      silence_asked_ = last_output_ = Clock::now();
    } else if (message.contains("ending")) {
      are_ranks_ending_ = true;
    } else if (message.contains("tell") || message.contains("hold")) {
      const bool is_hold = message.contains("hold");
      if (options_->tell) options_->tell(message[is_hold ? "hold" : "tell"].get<std::string>());
      waits_for_enter_ = waits_for_enter_ || is_hold;
    } else {
      last_message_ = std::move(message);
    }
  }
}

void JobFront::tell_of_silence(bool has_output) {
  const auto now = Clock::now();
  if (has_output) last_output_ = now;
  if (now - last_output_ < kSilenceLasts && now - *silence_asked_ < kLongestWait) return;
  silence_asked_.reset();
  send(to_guardian_.number(), &kSilence, 1, MSG_NOSIGNAL);
}

// Ranks that find the verdict on the board end within a millisecond, before the guardian can say so: the board is
// looked at. Where they stay for a debugger, what they write is shown until they are ended.
bool JobFront::holds_back() {
  if (!options_->holds_back) return false;
  if (!are_ranks_ending_ && options_->on_verdict == OnVerdict::end) {
    view_->refresh();
    are_ranks_ending_ = view_->verdict().has_value();
  }
  return are_ranks_ending_;
}

void JobFront::take_input() {
  std::array<char, 256> typed{};
  const auto count = read(STDIN_FILENO, typed.data(), typed.size());
  if (count < 0 && errno == EINTR) return;
  const auto text = std::string_view(typed.data(), static_cast<std::size_t>(std::max(count, ssize_t{0})));
  if (count > 0 && text.find('\n') == std::string_view::npos) return;
  // Where nothing more can come, nobody can say Enter.
  send(to_guardian_.number(), &kGoOn, 1, MSG_NOSIGNAL);
  waits_for_enter_ = false;
}

// The ranks died with the guardian. What they had started is ours by now.
VerdictJson JobFront::end_in_place_of(pid_t guardian, int status) {
  end_descendants(other_children_);
  view_->remove_names();
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
    if (!reader) continue;
    result.ranks.back().log = reader->log();
    result.ranks.back().num_bytes_held = reader->num_bytes_held();
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
  if (!options_->command_line.empty()) verdict["command"] = options_->command_line;
  result.verdict = verdict.dump(-1, ' ', false, VerdictJson::error_handler_t::replace);
  return result;
}

}  // namespace lockstep::sim
