#pragma once

namespace CLI {
class App;
}

namespace lockstep::cli {

/// `lockstep sim gallery`: runs programs with planted faults and judges how well each was explained.
/// @param exit_code  gets 0 if all are found and right, 1 if not; has to live as long as the app
void add_gallery_command(CLI::App& sim, int& exit_code);

}  // namespace lockstep::cli
