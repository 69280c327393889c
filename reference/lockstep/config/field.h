#pragma once

#include <string_view>

namespace lockstep::config {

/// One option of a handler: the name that Accelerate gives it, and the member that holds it. `fields_of(handler)` lists
/// them for each handler, in the order of its declaration.
template <typename Handler, typename T>
struct Field {
  std::string_view name;
  T Handler::*member;
};
template <typename Handler, typename T>
Field(const char*, T Handler::*) -> Field<Handler, T>;

}  // namespace lockstep::config
