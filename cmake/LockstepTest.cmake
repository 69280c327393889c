# Tests: GoogleTest programs in bin/, each run under ci/run_one, which fails a test that leaves anything behind.
#
# lockstep_test(FOLDER [RANKS] [NAME name] SOURCES ... [LIBRARIES ...])
#   FOLDER   the label, whose minutes ci/budget.txt counts
#   RANKS    the tests start ranks: each runs in a process of its own, two at a time, and its program forks before
#            LibTorch starts a thread. Without it the whole program is one ctest entry.
function(lockstep_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RANKS" "NAME" "SOURCES;LIBRARIES")
  set(name ${folder}_test)
  if(arg_NAME)
    set(name ${arg_NAME})
  elseif(arg_RANKS)
    set(name ${folder}_rank_test)
  endif()
  add_executable(${name} ${arg_SOURCES})
  lockstep_use_torch(${name})
  target_link_libraries(${name} PRIVATE lockstep::reference lockstep_test_support GTest::gtest ${arg_LIBRARIES})
  set(run_one "${PROJECT_SOURCE_DIR}/ci/run_one")
  if(arg_RANKS)
    include(GoogleTest)
    set_target_properties(${name} PROPERTIES CROSSCOMPILING_EMULATOR "${run_one}")
    gtest_discover_tests(${name} TEST_PREFIX "${folder}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${folder} TIMEOUT 300)
  else()
    add_test(NAME ${name} COMMAND "${run_one}" $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES LABELS ${folder} TIMEOUT 600)
  endif()
endfunction()

# lockstep_tsan_test(NAME PROGRAM FILTER): tests of a program that keep out of LibTorch's thread pools, as an entry of its own
# for `ci/sanitize tsan`. Only in that build; elsewhere they run with their program.
function(lockstep_tsan_test name program filter)
  if(NOT LOCKSTEP_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_test(NAME tsan.${name} COMMAND "${PROJECT_SOURCE_DIR}/ci/run_one" $<TARGET_FILE:${program}>
           "--gtest_filter=${filter}")
  set_tests_properties(tsan.${name} PROPERTIES LABELS tsan TIMEOUT 600)
endfunction()
