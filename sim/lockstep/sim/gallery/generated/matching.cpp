#include "lockstep/sim/gallery/generated/matching.h"

#include <cstdint>
#include <vector>

namespace lockstep::sim::generated {
namespace {

// What the checker's fingerprint holds of the tensors: of an all-to-all, rows may differ from rank to rank.
std::vector<std::int64_t> compared_shape(const Call& call) {
  if (call.action != Action::all_to_all) return call.shape;
  return {call.shape.begin() + 1, call.shape.end()};
}

bool labels_differ(const Call& a, const Call& b) { return !a.label.empty() && !b.label.empty() && a.label != b.label; }

bool have_same_fingerprint(const Call& a, const Call& b) {
  if (a.action != b.action) return false;
  if (has_tensor(a.action) && (a.dtype != b.dtype || compared_shape(a) != compared_shape(b))) return false;
  if (has_reduction(a.action) && a.reduction != b.reduction) return false;
  return !has_root(a.action) || a.peer == b.peer;
}

}  // namespace

bool look_alike(const Call& a, const Call& b) { return have_same_fingerprint(a, b) && !labels_differ(a, b); }

bool match(const Call& a, const Call& b) {
  if (is_point_to_point(a.action)) return a.dtype == b.dtype && num_elements(a) == num_elements(b);
  return look_alike(a, b) && (a.action != Action::all_to_all || a.shape == b.shape);
}

}  // namespace lockstep::sim::generated
