#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/accounting/account.h"
#include "lockstep/base/world.h"
#include "lockstep/comm/failure_board.h"

namespace lockstep::comm {

/// What a group's backend, its works and its facade share.
struct GroupContext {
  std::string name;
  World world;             ///< this rank within the group
  std::vector<int> ranks;  ///< global ranks of the members, in group order
  std::string backend;     ///< name in the table of backends
  std::chrono::milliseconds timeout;
  std::string plugin_options;
  bool debug = false;
  std::shared_ptr<accounting::Account> account;
  std::shared_ptr<FailureBoard> failures;  ///< none in groups that were made by hand
};

}  // namespace lockstep::comm
