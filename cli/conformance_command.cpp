#include "conformance_command.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "lockstep/conformance/serve/session.h"

namespace lockstep::cli {

void add_conformance_command(CLI::App& app) {
  auto* conformance =
      app.add_subcommand("conformance", "Judge what a backend or an implementation does, clause by clause");
  conformance->require_subcommand(1);
  auto* serve = conformance->add_subcommand(
      "serve", "Be a rank of the reference: a request per line of stdin, an answer per line of stdout (protocol 1)");
  serve->footer(
      "The rank is that of the environment (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, "
      "MASTER_PORT).\n"
      "Example: echo '{\"id\": 1, \"op\": \"data.shard\", \"args\": {\"n\": 9, \"b\": 2, \"shards\": 2}}' | lockstep "
      "conformance serve");
  serve->callback([] { conformance::serve(std::cin, LOCKSTEP_VERSION); });
}

}  // namespace lockstep::cli
