#include "lockstep/conformance/serve/answers.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::conformance {
namespace {

constexpr std::array<std::string_view, 11> kKinds = {"ValueError",
                                                     "TypeError",
                                                     "IndexError",
                                                     "KeyError",
                                                     "AttributeError",
                                                     "RuntimeError",
                                                     "NotImplementedError",
                                                     "ImportError",
                                                     "OSError",
                                                     "AssertionError",
                                                     "DistributedOperationException"};

// LibTorch's own types of errors, which Python shows as these.
std::string_view kind_of_torch(const c10::Error& error) {
  if (dynamic_cast<const c10::IndexError*>(&error) != nullptr) return "IndexError";
  if (dynamic_cast<const c10::ValueError*>(&error) != nullptr) return "ValueError";
  if (dynamic_cast<const c10::TypeError*>(&error) != nullptr) return "TypeError";
  if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr) return "NotImplementedError";
  return "RuntimeError";
}

}  // namespace

std::string kind_word(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const auto kind = torch != nullptr ? kind_of_torch(*torch) : kind_of(error);
  return std::string(std::ranges::find(kKinds, kind) == kKinds.end() ? "Error" : kind);
}

Json attempt(const std::function<Json()>& part) try { return part(); } catch (const Unsupported&) {
  throw;
} catch (const std::exception& error) {
  return {{"error", kind_word(error)}};
}

Json answer(const Json& id, const std::function<Json()>& work) try {
  return {{"id", id}, {"ok", work()}};
} catch (const Unsupported& reason) {
  return {{"id", id}, {"unsupported", reason.what()}};
} catch (const std::exception& error) {
  return {{"id", id}, {"error", {{"kind", kind_word(error)}, {"message", brief(error)}}}};
}

}  // namespace lockstep::conformance
