#include "lockstep/sim/world/stacks.h"

#include <elfutils/libdwfl.h>

#include <fstream>
#include <sstream>

#include "lockstep/sim/place/function_name.h"

namespace lockstep::sim {
namespace {

constexpr int kDeepest = 100;

struct EndSession {
  void operator()(Dwfl* session) const { dwfl_end(session); }
};
using Session = std::unique_ptr<Dwfl, EndSession>;

// libdw unwinds by what the files themselves have. Looking for separate ones may ask a server, while ranks stand still.
int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}

const Dwfl_Callbacks* callbacks() {
  static char* no_path = nullptr;
  static const Dwfl_Callbacks table = {.find_elf = dwfl_linux_proc_find_elf,
                                       .find_debuginfo = find_no_debuginfo,
                                       .section_address = dwfl_offline_section_address,
                                       .debuginfo_path = &no_path};
  return &table;
}

std::string why_not(const std::string& step) {
  const char* message = dwfl_errmsg(-1);
  return "  no stacks: " + step + ": " + (message == nullptr ? "" : message) + "\n";
}

}  // namespace

// What libdw calls for each thread, and for each of its frames.
struct StackReader::ThreadWriter {
  StackReader& reader;
  pid_t pid = 0;
  std::ostringstream text;
  int depth = 0;

  static int on_thread(Dwfl_Thread* thread, void* self) {
    auto& writer = *static_cast<ThreadWriter*>(self);
    const pid_t id = dwfl_thread_tid(thread);
    std::ifstream file("/proc/" + std::to_string(writer.pid) + "/task/" + std::to_string(id) + "/comm");
    std::string name;
    std::getline(file, name);
    writer.text << "  thread " << id << " (" << name << ")\n";
    writer.depth = 0;
    dwfl_thread_getframes(thread, on_frame, self);
    if (writer.depth == 0) writer.text << why_not("its frames");
    return DWARF_CB_OK;
  }

  static int on_frame(Dwfl_Frame* frame, void* self) {
    auto& writer = *static_cast<ThreadWriter*>(self);
    Dwarf_Addr address = 0;
    bool is_exact = false;
    if (writer.depth >= kDeepest || !dwfl_frame_pc(frame, &address, &is_exact)) return DWARF_CB_ABORT;
    // A return address may be the first of the next line; one before it is in the call.
    writer.write(dwfl_thread_dwfl(dwfl_frame_thread(frame)), is_exact ? address : address - 1);
    return DWARF_CB_OK;
  }

  void write(Dwfl* session, Dwarf_Addr address) {
    Dwfl_Module* module = dwfl_addrmodule(session, address);
    const char* path = nullptr;
    GElf_Addr bias = 0;
    if (module != nullptr) {
      dwfl_module_getelf(module, &bias);
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &path, nullptr);
    }
    const auto* file = path == nullptr ? nullptr : reader.file_of(path);
    const auto lines = file == nullptr ? std::vector<SourceLine>() : file->lines_at(address - bias);
    for (const auto& line : lines) start_line(line.function) << " at " << line.file << ":" << line.line << '\n';
    if (!lines.empty()) return;
    start_line(file == nullptr ? "" : short_function_name(file->symbol_at(address - bias)))
        << " in " << (path == nullptr ? "no file" : path) << '\n';
  }

  std::ostream& start_line(const std::string& function) {
    return text << "    #" << depth++ << " " << (function.empty() ? "?" : function);
  }
};

const DebugFile* StackReader::file_of(const std::string& path) {
  const auto [entry, is_new] = files_.try_emplace(path);
  if (is_new) entry->second = DebugFile::open(path);
  return entry->second.get();
}

std::string StackReader::stacks_of(pid_t pid) {
  const Session session(dwfl_begin(callbacks()));
  if (!session) return why_not("libdw");
  dwfl_report_begin(session.get());
  if (dwfl_linux_proc_report(session.get(), pid) != 0) return why_not("its mappings");
  dwfl_report_end(session.get(), nullptr, nullptr);
  if (dwfl_linux_proc_attach(session.get(), pid, /*assume_ptrace_stopped=*/false) != 0) return why_not("attaching");
  ThreadWriter writer{.reader = *this, .pid = pid};
  if (dwfl_getthreads(session.get(), ThreadWriter::on_thread, &writer) < 0) writer.text << why_not("its threads");
  return writer.text.str();
}

}  // namespace lockstep::sim
