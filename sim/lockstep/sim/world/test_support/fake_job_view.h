#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/sim/world/job_view.h"

namespace lockstep::sim::test {

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A job whose ranks, shell scripts, say what their monitors would by files of a folder:
///   verdict      the document, as soon as it is there
///   joined       a line "rank pid 0|1" for each that made a group; the last says whether it is checked
///   standing<k>  where rank k stands
///   notes        a line for each
/// What the launcher does is found in the files imposed, paused and signals.
class FakeJobView final : public JobView {
 public:
  explicit FakeJobView(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void refresh() override {}

  [[nodiscard]] std::optional<std::string> verdict() const override { return content_of("verdict"); }

  [[nodiscard]] std::vector<SeenRank> ranks() const override {
    std::vector<SeenRank> ranks;
    std::ifstream file(folder_ / "joined");
    SeenRank rank;
    while (file >> rank.rank >> rank.pid >> rank.is_checked) ranks.push_back(rank);
    return ranks;
  }

  [[nodiscard]] std::optional<std::string> standing_of(int rank) const override {
    return content_of("standing" + std::to_string(rank));
  }

  [[nodiscard]] std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    std::ifstream file(folder_ / "notes");
    for (std::string line; std::getline(file, line);) notes.push_back(line);
    return notes;
  }

  void set_signal(pid_t pid, int signal) override {
    std::ofstream(folder_ / "signals", std::ios::app) << pid << " " << signal << "\n";
  }

  void set_ended(int rank) override { std::ofstream(folder_ / ("ended" + std::to_string(rank))); }

  void set_paused(int rank, bool paused) override {
    std::ofstream(folder_ / "paused", std::ios::app) << rank << (paused ? " paused\n" : " goes on\n");
  }

  void impose(const std::string& verdict_json) override {
    if (!verdict()) std::ofstream(folder_ / "imposed") << verdict_json;
  }

  void remove_names() noexcept override {}

 private:
  [[nodiscard]] std::optional<std::string> content_of(const std::string& name) const {
    if (!std::filesystem::exists(folder_ / name)) return std::nullopt;
    return text_of(folder_ / name);
  }

  std::filesystem::path folder_;
};

}  // namespace lockstep::sim::test
