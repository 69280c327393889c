# How every target of Lockstep is compiled: one set of flags, one precompiled header.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
# Installed programs find the library beside them, wherever the prefix is.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" "$ORIGIN")
# Line tables and frame pointers are kept in release builds: reports resolve call sites from them.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -fno-omit-frame-pointer")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1 -fno-omit-frame-pointer")

# The precompiled header is shared by libraries and programs, so all of them are compiled with the same -fPIC.
add_compile_options(-fPIC -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
if(LOCKSTEP_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # ccache can hand out a precompiled header only when its time stamps are not part of it.
  add_compile_options(-Xclang -fno-pch-timestamp -fpch-validate-input-files-content)
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE})
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()
if(LOCKSTEP_CHECK_HEADERS)
  add_compile_options(-fsyntax-only)
endif()
find_program(LOCKSTEP_MOLD mold)
if(LOCKSTEP_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# LibTorch's headers cost 30 s to parse; compiled once here, they cost every other translation unit a few seconds.
file(WRITE "${CMAKE_BINARY_DIR}/pch.cpp" "// carries the precompiled header\n")
add_library(lockstep_pch OBJECT "${CMAKE_BINARY_DIR}/pch.cpp")
target_link_libraries(lockstep_pch PRIVATE lockstep::torch)
target_precompile_headers(lockstep_pch PRIVATE
  <torch/torch.h>
  <torch/csrc/distributed/c10d/Backend.hpp>
  <torch/csrc/distributed/c10d/ProcessGroup.hpp>
  <torch/csrc/distributed/c10d/PrefixStore.hpp>
  <torch/csrc/distributed/c10d/Work.hpp>
  <torch/csrc/distributed/c10d/reducer.hpp>
  <nlohmann/json.hpp>)

# Compiles `target` against LibTorch through the shared precompiled header.
function(lockstep_use_torch target)
  target_link_libraries(${target} PUBLIC lockstep::torch)
  target_precompile_headers(${target} REUSE_FROM lockstep_pch)
endfunction()

# The headers of a folder, included as "lockstep/folder/...". With LOCKSTEP_CHECK_HEADERS there are targets, apart from
# the default build, that compile each of them alone (ci/check_headers).
function(lockstep_headers target scope)
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/reference" FILES ${ARGN})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${LOCKSTEP_CHECK_HEADERS})
endfunction()

# lockstep_folder(NAME [NO_TORCH] SOURCES ... [HEADERS ...] [DEPS folder ...] [LIBRARIES ...])
#
# One folder of the reference: an object library that names the folders it includes. All of them together are the
# shared library lockstep::reference. NO_TORCH keeps LibTorch's include folder away: the wheel's fmt breaks the
# distribution's spdlog.
function(lockstep_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_TORCH" "" "SOURCES;HEADERS;DEPS;LIBRARIES")
  set(target lockstep_${name})
  list(TRANSFORM arg_HEADERS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_HEADERS ${arg_HEADERS})
  if(NOT arg_SOURCES)  # a folder of plain structs has headers alone
    add_library(${target} INTERFACE)
    lockstep_headers(${target} INTERFACE ${arg_HEADERS})
    return()
  endif()
  add_library(${target} OBJECT ${arg_SOURCES})
  lockstep_headers(${target} PUBLIC ${arg_HEADERS})
  if(NOT arg_NO_TORCH)
    lockstep_use_torch(${target})
  endif()
  foreach(dep IN LISTS arg_DEPS)
    if(TARGET lockstep_${dep})
      target_link_libraries(${target} PUBLIC lockstep_${dep})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_FOLDERS ${target})
endfunction()

# lockstep_program(NAME SOURCES ...): a program in bin/ on top of the reference.
function(lockstep_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  lockstep_use_torch(${name})
  target_link_libraries(${name} PRIVATE lockstep::reference ${arg_LIBRARIES})
endfunction()
