#include "lockstep/sim/check/board.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <random>
#include <stdexcept>

#include "lockstep/sim/check/process.h"

namespace lockstep::sim {
namespace {

constexpr auto kFolder = "/dev/shm";

[[noreturn]] void fail(const std::string& what, const std::string& name) {
  throw std::runtime_error("the checked backend could not " + what + " shared memory " + name + ": " +
                           std::strerror(errno) + ". Is /dev/shm there, writable and not full?");
}

std::string prefix_of(const std::string& job) {
  std::string prefix = "/lockstep-" + job;
  std::replace(prefix.begin() + 1, prefix.end(), '/', '_');
  return prefix.substr(0, 200) + "-";
}

void* map(int descriptor, std::size_t bytes, const std::string& name) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) fail("map", name);
  return memory;
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

void pause_briefly() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
  nanosleep(&pause, nullptr);
}

// Whether this process may write it now. One that died while it wrote has lost its claim.
bool take(layout::Claim& claim) {
  auto writer = claim.writer.load();
  if (writer != 0 && (is_alive(writer) || claim.is_there == 1)) return false;
  return claim.writer.compare_exchange_strong(writer, id_of(getpid()));
}

void write(layout::Group& group, std::uint64_t key, std::string_view name, const std::vector<int>& ranks) {
  group.key = key;
  group.size = static_cast<std::uint32_t>(ranks.size());
  group.name.fill('\0');
  std::copy_n(name.begin(), std::min(name.size(), group.name.size() - 1), group.name.begin());
  std::ranges::copy(ranks, group.ranks.begin());
  group.claim.is_there.store(1, std::memory_order_release);
}

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

std::shared_ptr<Board> Board::create(const std::string& job, int world_size) {
  if (world_size < 1 || world_size > layout::kMaxRanks) {
    throw std::runtime_error("the checked backend takes 1 to " + std::to_string(layout::kMaxRanks) + " ranks, got " +
                             std::to_string(world_size));
  }
  std::random_device random;
  const auto name = prefix_of(job) + std::to_string(random()) + std::to_string(random());
  const Descriptor file{shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (file.number < 0) fail("make", name);
  const auto bytes = layout::bytes_for(world_size);
  if (ftruncate(file.number, static_cast<off_t>(bytes)) != 0) {
    remove_name(name);
    fail("size", name);
  }
  std::shared_ptr<Board> board(new Board(name, map(file.number, bytes, name), bytes));
  // Fresh pages are zero, which is what every field begins with but these.
  auto& header = board->header();
  header.version = layout::kVersion;
  header.world_size = static_cast<std::uint32_t>(world_size);
  for (int rank = 0; rank < world_size; ++rank) board->seat(rank).arena_used.store(1);
  header.magic.store(layout::kMagic, std::memory_order_release);
  return board;
}

std::shared_ptr<Board> Board::open(const std::string& name) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (auto board = open_if_made(name)) return board;
    pause_briefly();
  }
  throw std::runtime_error("shared memory " + name + " was never finished by its maker");
}

std::shared_ptr<Board> Board::open_if_made(const std::string& name) {
  const Descriptor file{shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0)};
  if (file.number < 0) fail("open", name);
  struct stat status {};
  if (fstat(file.number, &status) != 0) fail("look at", name);
  if (status.st_size == 0) return nullptr;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < sizeof(layout::Header)) throw std::runtime_error("shared memory " + name + " is none of Lockstep's");
  std::shared_ptr<Board> board(new Board(name, map(file.number, bytes, name), bytes));
  const auto& header = board->header();
  const auto magic = header.magic.load(std::memory_order_acquire);
  if (magic == 0) return nullptr;
  if (magic != layout::kMagic || header.version != layout::kVersion ||
      layout::bytes_for(board->world_size()) != bytes) {
    throw std::runtime_error("shared memory " + name + " was made by another version of Lockstep");
  }
  return board;
}

Board::~Board() { munmap(memory_, bytes_); }

std::vector<std::string> Board::names_of(const std::string& job) {
  std::vector<std::string> names;
  const auto prefix = prefix_of(job).substr(1);
  DIR* folder = opendir(kFolder);
  if (folder == nullptr) return names;
  while (const auto* entry = readdir(folder)) {
    // Digits after it: a job within this one has a name that goes on with more.
    const std::string_view name = entry->d_name;
    const bool is_ours = name.starts_with(prefix) && name.size() > prefix.size() &&
                         name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
    if (is_ours) names.push_back("/" + std::string(name));
  }
  closedir(folder);
  return names;
}

void Board::remove_name(const std::string& name) noexcept { shm_unlink(name.c_str()); }

layout::RankSeat& Board::seat(int rank) const noexcept {
  const auto offset = layout::bytes_for(rank);  // that many seats, and the header, stand before it
  return *reinterpret_cast<layout::RankSeat*>(static_cast<char*>(memory_) + offset);
}

std::optional<int> Board::group(std::string_view name, const std::vector<int>& ranks, int instance) {
  auto key = mix(mix(0, name), static_cast<std::uint64_t>(instance));
  for (const int rank : ranks) key = mix(key, static_cast<std::uint64_t>(rank));
  for (int probe = 0; probe < layout::kMaxGroups; ++probe) {
    const auto index = static_cast<std::size_t>((key + static_cast<std::uint64_t>(probe)) % layout::kMaxGroups);
    auto& group = header().groups[index];
    // Its writer is at it for microseconds, or stopped by a debugger, or dead.
    while (group.claim.is_there.load(std::memory_order_acquire) == 0) {
      if (take(group.claim)) {
        write(group, key, name, ranks);
        break;
      }
      pause_briefly();
    }
    if (group.key == key) return static_cast<int>(index);
  }
  return std::nullopt;
}

std::optional<std::string> Board::verdict() const {
  const auto& space = header().verdict;
  if (space.claim.is_there.load(std::memory_order_acquire) == 0) return std::nullopt;
  return std::string(space.json.data(), space.size);
}

bool Board::post_verdict(std::string_view json) {
  auto& space = header().verdict;
  if (json.size() > space.json.size()) throw std::length_error("a verdict that is too long for the board");
  if (!take(space.claim)) return false;
  space.size = static_cast<std::uint32_t>(json.size());
  std::ranges::copy(json, space.json.begin());
  space.claim.is_there.store(1, std::memory_order_release);
  syscall(SYS_futex, &space.claim.is_there, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  return true;
}

bool Board::wait_for_verdict(int milliseconds) const {
  auto& is_there = header().verdict.claim.is_there;
  const auto deadline = now_ns() + static_cast<std::int64_t>(milliseconds) * 1'000'000;
  while (is_there.load(std::memory_order_acquire) == 0) {
    const auto left = deadline - now_ns();
    if (left <= 0) return false;
    const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    syscall(SYS_futex, &is_there, FUTEX_WAIT, 0, &timeout, nullptr, 0);
  }
  return true;
}

std::string_view arena_text(const layout::RankSeat& seat, std::uint32_t offset) {
  if (offset == 0 || offset >= seat.arena.size()) return {};
  const char* begin = seat.arena.data() + offset;
  return {begin, strnlen(begin, seat.arena.size() - offset)};
}

std::optional<layout::CallRecord> record_of(const layout::RankSeat& seat, std::uint64_t number) {
  if (number == 0) return std::nullopt;
  auto record = seat.records[number % layout::kRing].load();
  return record && record->number == number ? record : std::nullopt;
}

std::vector<layout::Wait> waits_of(const layout::RankSeat& seat) {
  std::vector<layout::Wait> waits;
  for (const auto& thread : seat.threads) {
    if (thread.tid == 0) continue;
    for (const auto* published : {&thread.wait, &thread.future_wait}) {
      if (const auto wait = published->load(); wait && wait->kind != layout::WaitKind::none) waits.push_back(*wait);
    }
  }
  return waits;
}

bool is_gone(const layout::RankSeat& seat) {
  const auto life = seat.life.load();
  if (life == layout::Life::absent) return false;  // it may come yet
  if (life != layout::Life::live) return true;
  return start_time_of(seat.pid) != seat.start_time;
}

}  // namespace lockstep::sim
