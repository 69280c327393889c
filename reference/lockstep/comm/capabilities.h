#pragma once

#include <c10/core/ScalarType.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lockstep/base/export.h"
#include "lockstep/comm/reduce_op.h"

namespace lockstep::comm {

/// What one operation of a backend takes; an empty set means anything.
struct OperationCapabilities {
  std::set<std::string> dtypes;  ///< as ATen spells them: "Float", "BFloat16", ...
  std::set<std::string> reduce_ops;
};

/// What a backend can do. A call that is not covered is refused before anything is sent: the answer depends on the
/// operation and the dtype alone, so all ranks refuse alike and none is left waiting.
class LOCKSTEP_API Capabilities {
 public:
  /// Everything is tried.
  Capabilities() = default;
  static Capabilities gloo();
  static Capabilities threads();
  /// @throws InvalidArgument  when the text is not what backend_plugin.h describes
  static Capabilities from_json(const std::string& backend, std::string_view json);

  /// @throws NotSupported  naming operation and backend
  void require(const std::string& operation) const;
  /// @throws NotSupported  naming operation, dtype and backend
  /// @throws RuntimeError  for the mean of integers (OPS-009)
  void require(const std::string& operation, at::ScalarType dtype, std::optional<ReduceOp> op) const;

  /// @throws NotSupported  for a tag other than 0 where messages bear none
  void require_tag(int tag) const;
  /// @throws NotSupported  where there are no groups within the world
  void require_groups() const;

  /// The reduction to ask the backend for in place of `op`, where it would not give a clean result.
  [[nodiscard]] ReduceOp stand_in(at::ScalarType dtype, ReduceOp op) const;

  /// Whether tensors of this dtype travel only as bytes: the backend moves data but does not know the type.
  [[nodiscard]] bool moves_as_bytes(at::ScalarType dtype) const;

 private:
  std::string backend_ = "this backend";
  std::optional<std::map<std::string, OperationCapabilities>> operations_;  // none: everything is tried
  std::set<at::ScalarType> as_bytes_;
  bool has_tags_ = true;
  bool has_groups_ = true;
  bool adds_bools_as_bytes_ = false;  // and so leaves 2 in one of them
};

}  // namespace lockstep::comm
