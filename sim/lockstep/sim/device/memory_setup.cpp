#include "lockstep/sim/device/memory_setup.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/sim/device/device_limit.h"
#include "lockstep/sim/device/tensor_memory.h"

namespace lockstep::sim {
namespace {

InvalidArgument bad_value(const std::string& key, const std::string& expected, const nlohmann::json& got) {
  return InvalidArgument({.where = "LOCKSTEP_SIM_SPEC, " + key, .expected = expected, .got = got.dump()});
}

}  // namespace

void set_up_memory(const nlohmann::json& spec) {
  if (!spec.is_object()) return;
  if (const auto memory = spec.find("memory"); memory != spec.end()) {
    if (!memory->is_boolean()) throw bad_value("memory", "true or false", *memory);
    if (memory->get<bool>()) TensorMemory::install();
  }
  if (const auto limit = spec.find("device_memory_bytes"); limit != spec.end()) {
    const bool is_size = limit->is_number_integer() && limit->get<std::int64_t>() > 0;
    if (!is_size) throw bad_value("device_memory_bytes", "a whole number above 0", *limit);
    TensorMemory::install();
    set_device_limit(limit->get<std::int64_t>());
  }
}

}  // namespace lockstep::sim
