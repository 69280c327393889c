"""Which of the repository's C++ files the extension is made of."""

# The checking core needs no torch and is compiled file by file; what needs torch is one translation unit, since torch's
# headers take longer than all of our code.
CORE = [
    "sim/lockstep/sim/check",
    "sim/lockstep/sim/device/byte_size.cpp",
    "sim/lockstep/sim/device/memory_report.cpp",
    "sim/lockstep/sim/device/rank_books.cpp",
    "reference/lockstep/accounting/phase.cpp",
    "reference/lockstep/base/error.cpp",
    "reference/lockstep/comm/open_sockets.cpp",
]
WITH_TORCH = [
    "sim/lockstep/sim/backend/call_checker.cpp",
    "sim/lockstep/sim/backend/checked_work.cpp",
    "sim/lockstep/sim/backend/process_ranks.cpp",
    "sim/lockstep/sim/device/counting_allocator.cpp",
    "sim/lockstep/sim/device/device_limit.cpp",
    "sim/lockstep/sim/device/tensor_memory.cpp",
]
# Files that are no part of it, by the end of their names.
TEST_ENDINGS = ("_test.cpp", "_test.h", "_test_support.h", "_test_support.cpp")
# Folders that these files and their headers lie in; setup.py puts them into the package.
SOURCE_FOLDERS = [
    "sim/lockstep/sim/backend",
    "sim/lockstep/sim/check",
    "sim/lockstep/sim/device",
    "sim/lockstep/sim/place",
    "reference/lockstep/accounting",
    "reference/lockstep/base",
    "reference/lockstep/comm",
]
