# Installs the libraries, their headers, the program with what it loads, and what find_package(Lockstep) needs.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep")
install(TARGETS lockstep_reference lockstep_sim lockstep_torch
        EXPORT LockstepTargets
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS lockstep DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS lockstep_checked lockstep_commands LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT LockstepTargets NAMESPACE lockstep:: DESTINATION "${package_dir}")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in"
                              "${CMAKE_BINARY_DIR}/LockstepConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/LockstepConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/LockstepConfig.cmake" "${CMAKE_BINARY_DIR}/LockstepConfigVersion.cmake"
        DESTINATION "${package_dir}")

if(LOCKSTEP_TESTS)
  add_test(NAME install.find_package
           COMMAND "${PROJECT_SOURCE_DIR}/ci/run_one" "${PROJECT_SOURCE_DIR}/ci/tests/find_package"
                   "${CMAKE_BINARY_DIR}" "${CMAKE_CXX_COMPILER}" "${LOCKSTEP_SANITIZE}")
  set_tests_properties(install.find_package PROPERTIES LABELS install ENVIRONMENT LOCKSTEP_TEST_ID=install)
endif()
