#include "torch_commands.h"

#include <dlfcn.h>

#include "lockstep/base/error.h"

namespace lockstep::cli {
namespace {

[[noreturn]] void refuse() {
  throw Missing({.where = "commands",
                 .expected = std::string(kTorchCommandsLibrary) + ", of this build, where it was installed",
                 .got = dlerror(),
                 .fix = "Install or build Lockstep anew; lockstep sim works without it."});
}

}  // namespace

void add_torch_commands(CLI::App& app) {
  // Never closed: LibTorch cannot be unloaded, and the app keeps the commands.
  void* const library = dlopen(kTorchCommandsLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse();
  void* const add = dlsym(library, kAddCommandsName);
  if (add == nullptr) refuse();
  reinterpret_cast<AddCommands>(add)(app);
}

}  // namespace lockstep::cli
