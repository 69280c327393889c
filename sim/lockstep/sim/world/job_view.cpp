#include "lockstep/sim/world/job_view.h"

#include "lockstep/sim/place/resolve_from_files.h"

namespace lockstep::sim {
namespace {

class BoardJobView final : public JobView {
 public:
  explicit BoardJobView(const std::string& job) : boards_(job, resolve_from_files()) {}

  void refresh() override { boards_.refresh(); }
  [[nodiscard]] std::optional<std::string> verdict() const override { return boards_.verdict(); }
  [[nodiscard]] std::vector<SeenRank> ranks() const override { return boards_.ranks(); }
  [[nodiscard]] std::optional<std::string> standing_of(int rank) const override { return boards_.standing_of(rank); }
  [[nodiscard]] std::vector<std::string> notes() const override { return boards_.notes(); }
  void set_signal(pid_t pid, int signal) override { boards_.set_signal(pid, signal); }
  void set_ended(int rank) override { boards_.set_ended(rank); }
  void set_paused(int rank, bool paused) override { boards_.set_paused(rank, paused); }
  void impose(const std::string& verdict_json) override { boards_.impose(verdict_json); }
  void remove_names() noexcept override { boards_.remove_names(); }

 private:
  BoardView boards_;
};

}  // namespace

std::unique_ptr<JobView> view_boards_of(const std::string& job) { return std::make_unique<BoardJobView>(job); }

}  // namespace lockstep::sim
