// The gallery as one executable: `lockstep_gallery NAME` is one rank of a program, `--list` tells which there are.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "lockstep/sim/gallery/gallery.h"
#include "lockstep/sim/gallery/generated/interpreter.h"
#include "lockstep/sim/main.h"

namespace lockstep::sim::gallery {
namespace {

// Files register their programs before main() begins, in an order that nobody promises.
std::vector<Program>& registered() {
  static std::vector<Program> programs;
  return programs;
}

void list(std::ostream& out) {
  for (const auto& program : programs()) {
    const nlohmann::ordered_json line = {{"name", program.name},   {"ranks", program.num_ranks},
                                         {"file", program.file},   {"line", program.line},
                                         {"kind", program.kind()}, {"legal", program.is_legal}};
    out << line.dump() << '\n';
  }
}

Functions functions() {
  Functions all;
  for (const auto& program : programs()) all.emplace_back(program.name, program.run);
  return all;
}

}  // namespace

std::string Program::kind() const { return std::filesystem::path(file).stem(); }

bool add_program(const Program& program) {
  registered().push_back(program);
  return true;
}

std::vector<Program> programs() {
  auto all = registered();
  std::ranges::sort(all, {}, [](const Program& program) {
    return std::tuple(program.is_legal, std::string_view(program.file), program.line);
  });
  return all;
}

}  // namespace lockstep::sim::gallery

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    lockstep::sim::gallery::list(std::cout);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--program") {
    const auto run = [argv](lockstep::sim::Rank& rank) { lockstep::sim::generated::run_generated(rank, argv[2]); };
    return lockstep::sim::main(1, argv, {{"generated", run}});
  }
  return lockstep::sim::main(argc, argv, lockstep::sim::gallery::functions());
}
