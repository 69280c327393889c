#include "call_labels.h"

#include <algorithm>
#include <mutex>
#include <sstream>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>

namespace lockstep::python {
namespace {

// The reducer tells its buckets only to those who do not hold its mutex, and it holds it while it calls us. Its member
// is open to classes that derive from it.
struct OpenReducer : c10d::Reducer {
  static auto buckets() { return &OpenReducer::buckets_; }
  static auto ensure_reduced() { return &OpenReducer::ensure_prior_reduction_finished; }
};

struct NamedReducer {
  std::weak_ptr<c10d::Reducer> reducer;
  std::vector<std::string> in_order;                   // as the reducer counts its parameters
  std::unordered_map<const void*, std::string> names;  // by parameter
};

struct NamedTensor {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::string name;
};

std::mutex mutex;
auto& reducers = *new std::vector<NamedReducer>;
auto& tensors_by_data = *new std::unordered_map<const void*, NamedTensor>;
thread_local std::string label;

// "... Parameter indices which did not receive grad for rank 0: 2 3\n ..."
std::vector<std::size_t> indices_in(std::string_view message) {
  constexpr std::string_view kBefore = "Parameter indices which did not receive grad for rank ";
  std::vector<std::size_t> indices;
  const auto found = message.find(kBefore);
  const auto colon = found == std::string_view::npos ? found : message.find(':', found);
  if (colon == std::string_view::npos) return indices;
  std::istringstream numbers{std::string(message.substr(colon + 1))};
  for (std::size_t index = 0; numbers >> index;) indices.push_back(index);
  return indices;
}

// While the mutex is held nothing may be destroyed: a reducer's end may need the interpreter lock, which someone may
// have who waits for the mutex. So whoever looks at reducers keeps them here until the mutex is free.
using LiveReducers = std::vector<std::shared_ptr<c10d::Reducer>>;

// Writes the names of what is in the bucket with this memory into `label`.
bool find_bucket(const NamedReducer& named, const void* data, LiveReducers& live) {
  const auto reducer = live.emplace_back(named.reducer.lock());
  if (!reducer) return false;
  for (const auto& bucket : (*reducer).*OpenReducer::buckets()) {
    if (!bucket.gradients.defined() || bucket.gradients.is_sparse() || bucket.gradients.const_data_ptr() != data)
      continue;
    for (const auto& parameter : bucket.variables) {
      const auto name = named.names.find(parameter.unsafeGetTensorImpl());
      if (!label.empty()) label += '\n';
      label += name == named.names.end() ? "?" : name->second;
    }
    return true;
  }
  return false;
}

}  // namespace

void name_buckets(const std::shared_ptr<c10d::Reducer>& reducer, const std::vector<at::Tensor>& parameters,
                  const std::vector<std::string>& names) {
  NamedReducer named{.reducer = reducer};
  for (std::size_t i = 0; i < std::min(parameters.size(), names.size()); ++i)
    named.names[parameters[i].unsafeGetTensorImpl()] = names[i];
  named.in_order = names;
  const std::lock_guard lock(mutex);
  std::erase_if(reducers, [](const NamedReducer& other) { return other.reducer.expired(); });
  reducers.push_back(std::move(named));
}

std::vector<std::string> parameters_without_gradient() {
  LiveReducers live;
  std::vector<std::string> names;
  const std::lock_guard lock(mutex);
  for (const auto& named : reducers) {
    const auto& reducer = live.emplace_back(named.reducer.lock());
    if (!reducer) continue;
    try {
      ((*reducer).*OpenReducer::ensure_reduced())();
    } catch (const std::exception& error) {
      for (const auto index : indices_in(error.what())) {
        if (index < named.in_order.size()) names.push_back(named.in_order[index]);
      }
    }
  }
  return names;
}

void name_tensor(const at::Tensor& tensor, const std::string& name) {
  const std::lock_guard lock(mutex);
  std::erase_if(tensors_by_data, [](const auto& entry) { return entry.second.storage.expired(); });
  tensors_by_data.insert_or_assign(
      tensor.const_data_ptr(),
      NamedTensor{.storage = c10::weak_intrusive_ptr<c10::StorageImpl>(tensor.storage().getWeakStorageImpl()),
                  .name = name});
}

std::string_view label_of(const std::vector<at::Tensor>& tensors, bool in_backward) {
  label.clear();
  if (tensors.empty() || !tensors.front().has_storage()) return label;
  const auto* data = tensors.front().const_data_ptr();
  LiveReducers live;
  const std::lock_guard lock(mutex);
  if (const auto named = tensors_by_data.find(data); named != tensors_by_data.end()) {
    if (!named->second.storage.expired()) return label = named->second.name;
  }
  for (auto named = reducers.begin(); in_backward && named != reducers.end(); ++named) {
    if (find_bucket(*named, data, live)) break;
  }
  return label;
}

}  // namespace lockstep::python
