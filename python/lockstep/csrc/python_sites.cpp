#include "python_sites.h"

#include <Python.h>

#include <string_view>
#include <unordered_map>
#include <utility>

#include "lockstep/sim/check/call.h"

namespace lockstep::python {
namespace {

// Under the interpreter lock, all of them; never destroyed, since threads may still ask while the process ends.
auto& library_folders = *new std::vector<std::string>;
auto& framework_folders = *new std::vector<std::string>;

// Keeps a reference to what is looked up by its address, so that no other object can get the address.
template <typename Value>
class ByCode {
 public:
  using Key = std::pair<PyCodeObject*, int>;

  Value* find(Key key) {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  Value* add(Key key, Value value) {
    Py_INCREF(reinterpret_cast<PyObject*>(key.first));
    return &values_.emplace(key, std::move(value)).first->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<void*>()(key.first) * 31 + static_cast<std::size_t>(key.second);
    }
  };
  std::unordered_map<Key, Value, Hash> values_;  // addresses of values stay
};

auto& owners = *new ByCode<Owner>;
auto& sites = *new ByCode<Site>;

std::string text_of(PyObject* unicode) {
  const char* text = unicode == nullptr ? nullptr : PyUnicode_AsUTF8(unicode);
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

bool is_below(std::string_view file, const std::vector<std::string>& folders) {
  for (const auto& folder : folders) {
    if (file.size() > folder.size() && file.starts_with(folder) && file[folder.size()] == '/') return true;
  }
  return false;
}

Owner owner_of(PyCodeObject* code) {
  if (const auto* known = owners.find({code, 0})) return *known;
  const auto file = text_of(code->co_filename);
  auto owner = Owner::user;
  if (file.starts_with("<frozen") || is_below(file, framework_folders)) {
    owner = Owner::framework;
  } else if (is_below(file, library_folders)) {
    owner = Owner::library;
  }
  return *owners.add({code, 0}, owner);
}

const Site* site_of(PyFrameObject* frame, PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030b0000
  const int instruction = PyFrame_GetLasti(frame);
  PyObject* name = code->co_qualname;
#else
  const int instruction = PyFrame_GetLineNumber(frame);  // there is no official way to the instruction
  PyObject* name = code->co_name;
#endif
  if (const auto* known = sites.find({code, instruction})) return known;
  const auto file = text_of(code->co_filename);
  const auto line = PyFrame_GetLineNumber(frame);
  return sites.add({code, instruction}, {.text = file + ":" + std::to_string(line) + ":" + text_of(name),
                                         .hash = sim::mix(sim::mix(0, file), static_cast<std::uint64_t>(line)) | 1});
}

// The innermost frame of the best owner that there is on the stack.
const Site* site_on_stack(PyThreadState* thread) {
  const Site* best = nullptr;
  auto best_owner = Owner::framework;
  for (auto* frame = PyThreadState_GetFrame(thread); frame != nullptr;) {
    auto* code = PyFrame_GetCode(frame);
    const auto owner = owner_of(code);
    if (best == nullptr || owner > best_owner) {
      best = site_of(frame, code);
      best_owner = owner;
    }
    Py_DECREF(reinterpret_cast<PyObject*>(code));
    auto* outer = best_owner == Owner::user ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = outer;
  }
  return best;
}

struct ThreadObserver {
  PyObject* active = nullptr;
  PyObject* observer = nullptr;
  Py_ssize_t num_threads = 0;
};
auto& threads = *new ThreadObserver;

void observe_if_changed() {
  if (threads.active == nullptr || PyDict_Size(threads.active) == threads.num_threads) return;
  threads.num_threads = PyDict_Size(threads.active);
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);  // of the caller, who may be about to raise it
  auto* result = PyObject_CallNoArgs(threads.observer);
  if (result == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
      PyErr_Clear();
      PyErr_SetInterrupt();  // it is the program's, which gets it at its next instruction
    } else {
      PyErr_WriteUnraisable(threads.observer);
    }
  }
  Py_XDECREF(result);
  PyErr_Restore(type, value, traceback);
}

bool is_ending() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

void set_library_folders(std::vector<std::string> libraries, std::vector<std::string> frameworks) {
  library_folders = std::move(libraries);
  framework_folders = std::move(frameworks);
}

void observe_threads(PyObject* active, PyObject* observer) {
  threads = {.active = active, .observer = observer};
  Py_INCREF(threads.active);
  Py_INCREF(threads.observer);
}

const Site* site_here() {
  // A thread that is none of Python's has no frame, and one that asks while the interpreter ends would never get its
  // lock.
  auto* thread = PyGILState_GetThisThreadState();
  if (thread == nullptr || is_ending()) return nullptr;
  const auto lock = PyGILState_Ensure();
  const auto* site = site_on_stack(thread);
  observe_if_changed();
  PyGILState_Release(lock);
  return site;
}

Owner owner_of_code(PyObject* code) { return owner_of(reinterpret_cast<PyCodeObject*>(code)); }

}  // namespace lockstep::python
