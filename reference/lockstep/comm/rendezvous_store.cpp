#include "lockstep/comm/rendezvous_store.h"

namespace lockstep::comm {
namespace {

class RendezvousStore final : public c10d::Store {
 public:
  RendezvousStore(comm::Store store, comm::Store::Interrupt interrupt)
      : c10d::Store(store.timeout()), store_(std::move(store)), interrupt_(std::move(interrupt)) {}

  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<RendezvousStore>(store_, interrupt_); }
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override { inner().set(key, value); }
  using c10d::Store::compareSet;
  std::vector<std::uint8_t> compareSet(const std::string& key, const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override {
    return inner().compareSet(key, expected, desired);
  }
  std::vector<std::uint8_t> get(const std::string& key) override {
    wait({key});
    return inner().get(key);
  }
  std::int64_t add(const std::string& key, std::int64_t value) override { return inner().add(key, value); }
  bool deleteKey(const std::string& key) override { return inner().deleteKey(key); }
  bool check(const std::vector<std::string>& keys) override { return inner().check(keys); }
  std::int64_t getNumKeys() override { return inner().getNumKeys(); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    store_.wait(keys, timeout, interrupt_);
  }

 private:
  c10d::Store& inner() const { return *store_.handle(); }

  comm::Store store_;
  comm::Store::Interrupt interrupt_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> rendezvous_store(const BackendRequest& request) {
  return c10::make_intrusive<RendezvousStore>(request.store, request.interrupt);
}

}  // namespace lockstep::comm
