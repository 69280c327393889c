# Imports LibTorch as lockstep::torch without find_package(Torch), which demands nvcc for a CUDA build of LibTorch even
# when nothing of CUDA is used, and then fails to link (docs/architecture.md, "The build").
#
# LOCKSTEP_TORCH_ROOT (cache or environment): an official LibTorch folder, the torch/ folder of an unpacked wheel, or
# the torch package of a Python environment; each holds include/ and lib/.
set(LOCKSTEP_TORCH_ROOT "$ENV{LOCKSTEP_TORCH_ROOT}" CACHE PATH "LibTorch folder (holds include/ and lib/)")
set(LOCKSTEP_TORCH_VERSION_WANTED 2.11.0)

if(NOT EXISTS "${LOCKSTEP_TORCH_ROOT}/include/torch/csrc/api/include/torch/torch.h")
  message(FATAL_ERROR "No LibTorch at LOCKSTEP_TORCH_ROOT='${LOCKSTEP_TORCH_ROOT}'.\n"
                      "Run ci/setup, which fetches one, and ci/build, which passes its folder on.")
endif()

file(STRINGS "${LOCKSTEP_TORCH_ROOT}/include/torch/headeronly/version.h" _version_lines
     REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" _version_numbers "${_version_lines}")
list(JOIN _version_numbers "." LOCKSTEP_TORCH_VERSION)
if(NOT LOCKSTEP_TORCH_VERSION VERSION_EQUAL LOCKSTEP_TORCH_VERSION_WANTED)
  message(FATAL_ERROR "LibTorch at ${LOCKSTEP_TORCH_ROOT} is ${LOCKSTEP_TORCH_VERSION}; "
                      "Lockstep needs ${LOCKSTEP_TORCH_VERSION_WANTED}.")
endif()
file(STRINGS "${LOCKSTEP_TORCH_ROOT}/lib/libtorch_cpu.so" _gloo REGEX "N4c10d16ProcessGroupGlooE" LIMIT_COUNT 1)
if(NOT _gloo)
  message(FATAL_ERROR "LibTorch at ${LOCKSTEP_TORCH_ROOT} was built without Gloo; Lockstep needs ProcessGroupGloo.")
endif()

find_library(LOCKSTEP_TORCH_CPU torch_cpu PATHS "${LOCKSTEP_TORCH_ROOT}/lib" NO_DEFAULT_PATH REQUIRED)
find_library(LOCKSTEP_C10 c10 PATHS "${LOCKSTEP_TORCH_ROOT}/lib" NO_DEFAULT_PATH REQUIRED)
find_path(LOCKSTEP_GLOO_INCLUDE gloo/config.h REQUIRED)  # headers only; Gloo itself is inside libtorch_cpu
find_package(Threads REQUIRED)

add_library(lockstep_torch INTERFACE)
add_library(lockstep::torch ALIAS lockstep_torch)
set_target_properties(lockstep_torch PROPERTIES EXPORT_NAME torch)
target_include_directories(lockstep_torch SYSTEM INTERFACE "${LOCKSTEP_TORCH_ROOT}/include"
                           "${LOCKSTEP_TORCH_ROOT}/include/torch/csrc/api/include")
target_compile_definitions(lockstep_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO FMT_HEADER_ONLY)
target_link_libraries(lockstep_torch INTERFACE "${LOCKSTEP_TORCH_CPU}" "${LOCKSTEP_C10}" Threads::Threads
                      ${CMAKE_DL_LIBS})
# A wheel's libtorch_cpu needs two CUDA runtime libraries, which its own RPATH finds beside it. RPATH rather than
# RUNPATH, so that libraries that LibTorch loads later look there as well.
target_link_options(lockstep_torch INTERFACE LINKER:--allow-shlib-undefined
                    "LINKER:-rpath,${LOCKSTEP_TORCH_ROOT}/lib" LINKER:--disable-new-dtags)
message(STATUS "LibTorch ${LOCKSTEP_TORCH_VERSION} at ${LOCKSTEP_TORCH_ROOT}")

if(LOCKSTEP_GPU)
  find_package(CUDAToolkit REQUIRED)
  find_path(LOCKSTEP_NCCL_INCLUDE nccl.h PATHS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED)
  find_library(LOCKSTEP_NCCL nccl PATHS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
  find_library(LOCKSTEP_TORCH_CUDA torch_cuda PATHS "${LOCKSTEP_TORCH_ROOT}/lib" NO_DEFAULT_PATH REQUIRED)
  find_library(LOCKSTEP_C10_CUDA c10_cuda PATHS "${LOCKSTEP_TORCH_ROOT}/lib" NO_DEFAULT_PATH REQUIRED)
  target_compile_definitions(lockstep_torch INTERFACE USE_C10D_NCCL)
  target_include_directories(lockstep_torch SYSTEM INTERFACE ${LOCKSTEP_NCCL_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(lockstep_torch INTERFACE CUDA::cudart "${LOCKSTEP_NCCL}")
  # libtorch_cuda registers its kernels when it is loaded; nothing names its symbols, so the linker must not drop it.
  target_link_options(lockstep_torch INTERFACE
                      "LINKER:--no-as-needed,${LOCKSTEP_TORCH_CUDA},${LOCKSTEP_C10_CUDA},--as-needed")
endif()
