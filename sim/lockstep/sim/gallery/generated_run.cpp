#include "lockstep/sim/gallery/generated_run.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/sim/gallery/generated/generate.h"

namespace lockstep::sim::gallery {
namespace {

constexpr auto kRunLimit = std::chrono::seconds(60);

/// The program's file, which the ranks read; removed with its object.
class ProgramFile {
 public:
  explicit ProgramFile(const generated::Program& program) {
    auto path = (std::filesystem::temp_directory_path() / "lockstep-generated-XXXXXX").string();
    const int descriptor = mkstemp(path.data());
    if (descriptor < 0) throw FileError({.where = "sim gallery", .expected = "to write " + path});
    close(descriptor);
    path_ = path;
    std::ofstream(path_) << generated::to_json(program);
  }
  ~ProgramFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string verdict_of(const GeneratedOptions& options, const generated::Program& program) {
  const ProgramFile file(program);
  return run({.num_ranks = program.world_size,
              .argv = {options.program.string(), "--program", file.path()},
              .environment = options.environment,
              .output = RankOutput::kept,
              .is_quiet = true,
              .timeout = kRunLimit})
      .verdict;
}

double seconds_of(const std::string& verdict) { return nlohmann::json::parse(verdict).value("since_stall_s", 0.0); }

}  // namespace

generated::Summary run_generated_programs(const GeneratedOptions& options) {
  generated::Summary summary;
  auto seed = options.seed;
  while (summary.num_judged() < options.num_faulty) {
    const auto one = generated::make_case(seed++);
    if (one.is_harmless()) {
      summary.add_harmless();
      continue;
    }
    const auto verdict = verdict_of(options, one.program);
    const auto judgement = generated::judge(one, verdict, seconds_of(verdict));
    summary.add(judgement);
    if (options.tell && !judgement.is_line_right) options.tell(judgement.text);
  }
  for (int i = 0; i < options.num_healthy; ++i) {
    const auto healthy_seed = options.seed + static_cast<std::uint64_t>(i);
    summary.add_healthy(healthy_seed, verdict_of(options, generated::generate(healthy_seed)));
  }
  return summary;
}

}  // namespace lockstep::sim::gallery
