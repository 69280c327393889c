// A plug-in with a fault, for tests: each of the macros gives another one.
#include <cstdio>

#include "lockstep/comm/backend_plugin.h"

extern "C" {

#ifndef WITHOUT_FUNCTIONS
__attribute__((visibility("default"))) const char* lockstep_backend_abi_v1() {
#ifdef ANOTHER_ABI
  return "1;torch=1.0.0;cxx11=0";
#else
  return LOCKSTEP_BACKEND_ABI;
#endif
}

__attribute__((visibility("default"))) int lockstep_backend_create_v1(const c10::intrusive_ptr<c10d::Store>*, int, int,
                                                                      const char* options_json,
                                                                      c10::intrusive_ptr<c10d::Backend>*, char* error,
                                                                      std::size_t error_size) {
  std::snprintf(error, error_size, "no device, with options %s", options_json);
  return 1;
}
#endif
}
