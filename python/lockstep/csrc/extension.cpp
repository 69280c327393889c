// The extension module: what the package's Python files call.
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <cstdlib>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "call_labels.h"
#include "checked_gloo.h"
#include "checked_store.h"
#include "python_caller.h"
#include "python_memory.h"
#include "python_sites.h"

namespace lockstep::python {

/// Lets go of the interpreter lock before it may destroy what it holds: that joins threads of Gloo's, which may need
/// the lock to give up tensors. torch holds its own groups alike.
template <typename T>
class UnlockingHolder {
 public:
  UnlockingHolder() = default;
  UnlockingHolder(c10::intrusive_ptr<T> object) : object_(std::move(object)) {}  // NOLINT: pybind11 converts
  explicit UnlockingHolder(T* object) : object_(c10::intrusive_ptr<T>::unsafe_steal_from_new(object)) {}
  UnlockingHolder(const UnlockingHolder&) = default;
  UnlockingHolder(UnlockingHolder&&) noexcept = default;
  UnlockingHolder& operator=(const UnlockingHolder&) = default;
  UnlockingHolder& operator=(UnlockingHolder&&) noexcept = default;
  ~UnlockingHolder() {
    if (!object_ || PyGILState_Check() == 0) return;
    const pybind11::gil_scoped_release no_lock;
    object_.reset();
  }

  T* get() const noexcept { return object_.get(); }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_.get(); }

 private:
  c10::intrusive_ptr<T> object_;
};

}  // namespace lockstep::python

PYBIND11_DECLARE_HOLDER_TYPE(T, lockstep::python::UnlockingHolder<T>, true)

namespace {

using namespace lockstep::python;
using CheckedTCPStore = CheckedStore<c10d::TCPStore>;
using CheckedFileStore = CheckedStore<c10d::FileStore>;

c10::intrusive_ptr<CheckedGloo> make_gloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                          const std::function<c10::intrusive_ptr<GlooOptions>()>& make_options) {
  // Which group it is that torch makes: its constructor's arguments do not say.
  const auto describe = py::module_::import("lockstep._groups").attr("describe");
  const auto described = describe(store, rank, size).cast<std::tuple<std::string, std::vector<int>, int>>();
  const GroupRequest request{.store = store,
                             .rank = rank,
                             .ranks = std::get<1>(described),
                             .world_size = std::get<2>(described),
                             .name = std::get<0>(described)};
  const py::gil_scoped_release no_lock;
  return make_checked_gloo(request, make_options);
}

void add_backend(py::module_& module) {
  py::class_<CheckedGloo, UnlockingHolder<CheckedGloo>, c10d::ProcessGroupGloo>(module, "ProcessGroupGloo")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       const c10::intrusive_ptr<GlooOptions>& options) {
             return make_gloo(store, rank, size, [&] { return options; });
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"))
      .def(py::init(
               [](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout) {
                 return make_gloo(store, rank, size, [&] { return GlooOptions::create_default(timeout); });
               }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout") = ::kBackendDefaultTimeout);
}

// The arguments are those of torch's own classes.
void add_stores(py::module_& module) {
  py::class_<CheckedTCPStore, c10::intrusive_ptr<CheckedTCPStore>, c10d::TCPStore>(module, "TCPStore")
      .def(py::init([](const std::string& host, std::uint16_t port, std::optional<int> world_size, bool is_master,
                       std::chrono::milliseconds timeout, bool wait_for_workers, bool multi_tenant,
                       std::optional<int> master_listen_fd, bool use_libuv) {
             c10d::TCPStoreOptions options;
             options.port = port;
             options.isServer = is_master;
             if (world_size && *world_size >= 0) options.numWorkers = static_cast<std::size_t>(*world_size);
             options.waitWorkers = wait_for_workers;
             options.timeout = timeout;
             options.multiTenant = multi_tenant;
             options.masterListenFd = master_listen_fd;
             options.useLibUV = use_libuv;
             return c10::make_intrusive<CheckedTCPStore>(host, options);
           }),
           py::arg("host_name"), py::arg("port"), py::arg("world_size") = py::none(), py::arg("is_master") = false,
           py::arg("timeout") = std::chrono::milliseconds(c10d::Store::kDefaultTimeout),
           py::arg("wait_for_workers") = true, py::arg("multi_tenant") = false,
           py::arg("master_listen_fd") = py::none(), py::arg("use_libuv") = true,
           py::call_guard<py::gil_scoped_release>());
  py::class_<CheckedFileStore, c10::intrusive_ptr<CheckedFileStore>, c10d::FileStore>(module, "FileStore")
      .def(py::init([](const std::string& file_name, int world_size) {
             return c10::make_intrusive<CheckedFileStore>(file_name, world_size);
           }),
           py::arg("file_name"), py::arg("world_size") = -1, py::call_guard<py::gil_scoped_release>());
}

void add_settings(py::module_& module) {
  module.def(
      "configure",
      [](const std::string& job, const std::string& level, bool is_launched, bool is_paused, bool is_frozen,
         bool strict_places, bool hold, double stall_s) {
        auto options = lockstep::sim::CheckOptions::with_level(level);
        options.strict_places = strict_places;
        options.hold = hold;
        options.stall_s = stall_s;
        set_settings({.job = job,
                      .is_launched = is_launched,
                      .is_paused = is_paused,
                      .is_frozen = is_frozen,
                      .options = options});
      },
      py::kw_only(), py::arg("job"), py::arg("level"), py::arg("is_launched"), py::arg("is_paused"),
      py::arg("is_frozen"), py::arg("strict_places"), py::arg("hold"), py::arg("stall_s"));
  module.def("observe_threads", [](const py::dict& active, const py::function& observer) {
    observe_threads(active.ptr(), observer.ptr());
  });
  module.def("add_backend_threads", add_backend_threads);
  module.def("set_library_folders", set_library_folders, py::arg("libraries"), py::arg("frameworks"));
}

// The exit code is known only here: Python tells its own exit functions nothing of it.
void end_at_exit(int exit_code, void*) { end_ranks(exit_code); }

}  // namespace

PYBIND11_MODULE(_core, module) {
  py::module_::import("torch._C._distributed_c10d");  // registers the base classes
  add_backend(module);
  add_stores(module);
  add_settings(module);
  module.def("name_buckets", name_buckets);
  module.def("parameters_without_gradient", parameters_without_gradient);
  module.def("name_tensor", name_tensor);
  module.def("set_step", set_step);
  module.def("step", step);
  module.def("owner_of_code", [](const py::object& code) { return static_cast<int>(owner_of_code(code.ptr())); });
  module.def("count_memory", count_memory, py::arg("device_bytes"));
  module.def("set_memory_rank", set_memory_rank);
  module.def("memory_summary", memory_summary);
  module.def("hold_ranks", hold_ranks);
  module.def("wait_until_idle", wait_until_idle, py::call_guard<py::gil_scoped_release>());
  module.def("end_ranks", end_ranks, py::call_guard<py::gil_scoped_release>());
  module.def("fail_rank", fail_rank, py::call_guard<py::gil_scoped_release>());
  module.def("end_ranks_at_exit", [] { on_exit(end_at_exit, nullptr); });
}
