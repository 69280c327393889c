#include "lockstep/sim/place/debug_file.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "lockstep/sim/place/function_name.h"

namespace lockstep::sim {

namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

struct CloseElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};
struct CloseDwarf {
  void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};

struct Symbol {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  const char* name = "";  // in the ELF file's memory
};

// Addresses of a compile unit. Clang writes no .debug_aranges, so that libdw's own search by address finds nothing.
struct UnitRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Dwarf_Off unit = 0;
};

// The last entry that begins at or before `address`, nullptr if there is none.
template <class Entry>
const Entry* last_before(const std::vector<Entry>& entries, std::uint64_t address) {
  const auto after = std::upper_bound(entries.begin(), entries.end(), address,
                                      [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.begin; });
  return after == entries.begin() ? nullptr : &*std::prev(after);
}

template <class Entry>
void sort_by_begin(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
}

void add_symbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, std::vector<Symbol>& symbols) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  for (int i = 0; i < static_cast<int>(header.sh_size / header.sh_entsize); ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
    if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name != nullptr) symbols.push_back({.begin = symbol.st_value, .size = symbol.st_size, .name = name});
  }
}

std::vector<Symbol> read_symbols(Elf* elf) {
  std::vector<Symbol> symbols;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr; section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) add_symbols(elf, section, header, symbols);
  }
  sort_by_begin(symbols);
  return symbols;
}

std::vector<UnitRange> read_units(Dwarf* dwarf) {
  std::vector<UnitRange> units;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;) {
      units.push_back({.begin = begin, .end = end, .unit = dwarf_dieoffset(&die)});
    }
  }
  sort_by_begin(units);
  return units;
}

std::string absolute(const char* file, Dwarf_Die& unit) {
  std::filesystem::path path = file;
  if (path.is_relative()) {
    Dwarf_Attribute attribute;
    const char* folder = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
    if (folder != nullptr) path = folder / path;
  }
  return path.lexically_normal().string();
}

// With -g1 clang gives a function the name alone, without its scope; better a linkage name where there is one.
std::string function_of(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned int kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    const char* linkage = dwarf_formstring(dwarf_attr_integrate(&die, kind, &attribute));
    if (linkage != nullptr) return short_function_name(linkage);
  }
  const char* name = dwarf_diename(&die);
  return name != nullptr ? short_function_name(name) : "";
}

// Where an inlined function was called.
SourceLine call_site(Dwarf_Die& inlined, Dwarf_Die& unit) {
  SourceLine site;
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_line, &attribute), &value) == 0) {
    site.line = static_cast<int>(value);
  }
  Dwarf_Files* files = nullptr;
  std::size_t num_files = 0;
  if (dwarf_formudata(dwarf_attr(&inlined, DW_AT_call_file, &attribute), &value) == 0 &&
      dwarf_getsrcfiles(&unit, &files, &num_files) == 0) {
    const char* file = dwarf_filesrc(files, value, nullptr, nullptr);
    if (file != nullptr) site.file = absolute(file, unit);
  }
  return site;
}

// Adds the functions below `parent` whose code an address is in, innermost first: inlined ones, then the one they were
// inlined into. dwarf_getscopes() does not look into namespaces, where clang puts its functions.
bool find_functions(Dwarf_Die& parent, std::uint64_t address, std::vector<Dwarf_Die>& functions) {
  Dwarf_Die die;
  if (dwarf_child(&parent, &die) != 0) return false;
  do {
    const int tag = dwarf_tag(&die);
    const bool is_function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
    const bool has_code = is_function || tag == DW_TAG_lexical_block;
    const bool is_here = has_code && dwarf_haspc(&die, address) == 1;
    // A function may hold others that are not part of its code: lambdas.
    if (!is_here && tag != DW_TAG_subprogram && tag != DW_TAG_namespace) continue;
    const bool is_inside = find_functions(die, address, functions);
    if (is_here && is_function) functions.push_back(die);
    if (is_here || is_inside) return true;
  } while (dwarf_siblingof(&die, &die) == 0);
  return false;
}

// A template that was instantiated with a lambda, as clang or g++ names it.
bool takes_lambda(Dwarf_Die& function) {
  const char* name = dwarf_diename(&function);
  return name != nullptr && (std::strstr(name, "(lambda at ") != nullptr || std::strstr(name, "<lambda(") != nullptr);
}

// With -g1 an inlined operator() has no scope: whose it is has to be told from the functions around it.
void name_call_operators(std::vector<SourceLine>& lines, const std::string& symbol, bool is_lambda) {
  const std::string passed = lambda_passed_to(symbol);
  const std::string& around = lines.back().function;
  for (SourceLine& line : lines) {
    if (&line == &lines.back() || line.function != "operator()") continue;
    line.function = !passed.empty() ? passed : (is_lambda ? "lambda in " : "operator() in ") + around;
  }
}

}  // namespace

struct DebugFile::Content {
  explicit Content(const std::string& path) : descriptor(path) {}

  Descriptor descriptor;
  std::unique_ptr<Elf, CloseElf> elf;
  std::unique_ptr<Dwarf, CloseDwarf> dwarf;  // nullptr without debug information
  std::vector<GElf_Phdr> segments;
  std::vector<Symbol> symbols;
  std::vector<UnitRange> units;
};

DebugFile::DebugFile(std::unique_ptr<Content> content) : content_(std::move(content)) {}
DebugFile::~DebugFile() = default;

std::unique_ptr<DebugFile> DebugFile::open(const std::string& path) {
  elf_version(EV_CURRENT);
  auto content = std::make_unique<Content>(path);
  if (content->descriptor.number() < 0) return nullptr;
  content->elf.reset(elf_begin(content->descriptor.number(), ELF_C_READ, nullptr));
  Elf* const elf = content->elf.get();
  std::size_t num_segments = 0;
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &num_segments) != 0) return nullptr;
  for (std::size_t i = 0; i < num_segments; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) continue;
    if (segment.p_type == PT_LOAD) content->segments.push_back(segment);
  }
  content->symbols = read_symbols(elf);
  content->dwarf.reset(dwarf_begin_elf(elf, DWARF_C_READ, nullptr));
  if (content->dwarf != nullptr) content->units = read_units(content->dwarf.get());
  return std::unique_ptr<DebugFile>(new DebugFile(std::move(content)));
}

std::uint64_t DebugFile::address_of(std::uint64_t file_offset) const {
  for (const GElf_Phdr& segment : content_->segments) {
    if (file_offset < segment.p_offset || file_offset - segment.p_offset >= segment.p_filesz) continue;
    return file_offset - segment.p_offset + segment.p_vaddr;
  }
  return file_offset;
}

std::string DebugFile::symbol_at(std::uint64_t address) const {
  const Symbol* symbol = last_before(content_->symbols, address);
  const bool is_in = symbol != nullptr && (symbol->size == 0 || address - symbol->begin < symbol->size);
  return is_in ? symbol->name : "";
}

std::vector<SourceLine> DebugFile::lines_at(std::uint64_t address) const {
  const UnitRange* range = last_before(content_->units, address);
  Dwarf_Die unit;
  if (range == nullptr || address >= range->end) return {};
  if (dwarf_offdie(content_->dwarf.get(), range->unit, &unit) == nullptr) return {};

  Dwarf_Line* entry = dwarf_getsrc_die(&unit, address);
  const char* file = entry != nullptr ? dwarf_linesrc(entry, nullptr, nullptr) : nullptr;
  int number = 0;
  if (file == nullptr || dwarf_lineno(entry, &number) != 0) return {};
  std::vector<SourceLine> lines = {{.file = absolute(file, unit), .line = number, .function = ""}};

  std::vector<Dwarf_Die> functions;
  find_functions(unit, address, functions);
  bool is_lambda = false;
  for (Dwarf_Die& function : functions) {
    lines.back().function = function_of(function);
    is_lambda = is_lambda || takes_lambda(function);
    if (dwarf_tag(&function) == DW_TAG_inlined_subroutine) lines.push_back(call_site(function, unit));
  }
  const std::string symbol = symbol_at(address);
  if (!symbol.empty()) lines.back().function = short_function_name(symbol);
  name_call_operators(lines, symbol, is_lambda);
  return lines;
}

}  // namespace lockstep::sim
