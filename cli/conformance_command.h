#pragma once

namespace CLI {
class App;
}

namespace lockstep::cli {

/// `lockstep conformance serve`: this process is a rank of the reference, and answers conformance requests.
void add_conformance_command(CLI::App& app);

}  // namespace lockstep::cli
