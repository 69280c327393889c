// A backend of one's own in one file: every collective goes through the key-value store at which the ranks met. It is
// slow, and right, and shows all that Lockstep asks of a plug-in. It needs LibTorch and backend_plugin.h alone:
//
//   clang++ -std=c++20 -shared -fPIC -DUSE_DISTRIBUTED store_backend.cpp -o libstore_backend.so ...LibTorch...
//   LOCKSTEP_BACKEND=./libstore_backend.so
#include <ATen/Functions.h>

#include <cstdio>
#include <cstring>

#include "lockstep/comm/backend_plugin.h"

namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// A call here is over when it returns. The future holds the outputs: c10d::Reducer reads it.
class FinishedWork final : public c10d::Work {
 public:
  explicit FinishedWork(Tensors outputs)
      : future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
    future_->markCompleted(c10::IValue(std::move(outputs)));
    finish();
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class StoreBackend final : public c10d::Backend {
 public:
  StoreBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
      : Backend(rank, size), store_(std::move(store)) {}

  const std::string getBackendName() const override { return "store"; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    const at::NoGradGuard no_grad;
    auto& tensor = tensors.front();
    const auto all = exchange(tensor);
    tensor.copy_(all.front());
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      tensor.add_(all[rank]);  // in rank order: equal bits everywhere
    if (options.reduceOp.op_ == c10d::ReduceOp::AVG) tensor.div_(getSize());
    return done({tensor});
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    const at::NoGradGuard no_grad;
    auto& tensor = tensors.front();
    const auto key = next_key();
    if (getRank() == options.rootRank) {
      put(key, tensor);
      my_keys_.push_back(key);
    } else {
      tensor.copy_(take(key, tensor));
    }
    return done({tensor});
  }

  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions&) override {
    const at::NoGradGuard no_grad;
    const auto all = exchange(inputs.front());
    for (std::size_t rank = 0; rank < all.size(); ++rank) outputs.front()[rank].copy_(all[rank]);
    return done(outputs.front());
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) override {
    const at::NoGradGuard no_grad;
    output.view(-1).copy_(at::cat(exchange(input.reshape(-1))));
    return done({output});
  }

  WorkPtr barrier(const c10d::BarrierOptions&) override {
    exchange(at::zeros({1}));
    return done({});
  }

 private:
  static WorkPtr done(Tensors outputs) { return c10::make_intrusive<FinishedWork>(std::move(outputs)); }

  // All ranks make the same calls in the same order, so that counting them gives each call the same name everywhere.
  std::string next_key() { return std::to_string(num_calls_++); }

  void put(const std::string& key, const at::Tensor& tensor) {
    const auto whole = tensor.contiguous();
    std::vector<std::uint8_t> bytes(whole.nbytes());
    if (!bytes.empty()) std::memcpy(bytes.data(), whole.const_data_ptr(), bytes.size());
    store_->set(key, bytes);
  }

  // Waits for the key, as long as the store's time-out allows; `like` says how to read the bytes.
  at::Tensor take(const std::string& key, const at::Tensor& like) {
    const auto bytes = store_->get(key);
    auto tensor = at::empty(like.sizes(), like.options().memory_format(at::MemoryFormat::Contiguous));
    TORCH_CHECK(bytes.size() == tensor.nbytes(), "store: a peer sent ", bytes.size(), " bytes, expected ",
                tensor.nbytes());
    if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    return tensor;
  }

  // Everybody's tensor. When it returns, all ranks have come to this call and so are through with those before it,
  // whose keys nobody needs any longer.
  Tensors exchange(const at::Tensor& mine) {
    const auto call = next_key() + "/";
    const auto my_key = call + std::to_string(getRank());
    put(my_key, mine);
    Tensors all;
    for (int rank = 0; rank < getSize(); ++rank) all.push_back(take(call + std::to_string(rank), mine));
    for (const auto& key : my_keys_) store_->deleteKey(key);
    my_keys_ = {my_key};
    return all;
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::uint64_t num_calls_ = 0;
  std::vector<std::string> my_keys_;  // that are still in the store
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* lockstep_backend_abi_v1() { return LOCKSTEP_BACKEND_ABI; }

__attribute__((visibility("default"))) int lockstep_backend_create_v1(const c10::intrusive_ptr<c10d::Store>* store,
                                                                      int rank, int size, const char* /*options_json*/,
                                                                      c10::intrusive_ptr<c10d::Backend>* out,
                                                                      char* error, std::size_t error_size) {
  try {
    *out = c10::make_intrusive<StoreBackend>(*store, rank, size);
    return 0;
  } catch (const std::exception& exception) {
    std::snprintf(error, error_size, "%s", exception.what());
    return 1;
  }
}

// What is not declared is refused before it is called, on all ranks alike.
__attribute__((visibility("default"))) const char* lockstep_backend_capabilities_v1() {
  return R"({"name": "store", "devices": ["cpu"], "async": false, "tags": false, "groups": true,
             "ops": {"allreduce": {"dtypes": ["Float", "Double"], "reduce_ops": ["sum", "avg"]},
                     "broadcast": {}, "allgather": {}, "barrier": {}}})";
}
}
