#include "lockstep/comm/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/comm/comm_test_support.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLong{5000};

// What holds for each kind of store.
class AnyStore : public testing::TestWithParam<std::string> {
 protected:
  Store make() {
    if (GetParam() == "hash") return Store::hash(kLong);
    if (GetParam() == "file") return Store::file(folder_.file("store"), 1, kLong);
    return Store::tcp("127.0.0.1", 0, /*is_server=*/true, kLong);
  }

 private:
  TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, AnyStore, testing::Values("hash", "file", "tcp"),
                         [](const auto& info) { return info.param; });

TEST_P(AnyStore, KeepsBytes) {
  auto store = make();
  EXPECT_FALSE(store.has("k"));
  EXPECT_EQ(store.find("k"), std::nullopt);
  const std::string bytes("a\0b\xff", 4);
  store.set("k", bytes);
  EXPECT_TRUE(store.has("k"));
  EXPECT_EQ(store.get("k"), bytes);
  EXPECT_EQ(store.find("k"), bytes);
  store.set("k", "new");
  EXPECT_EQ(store.get("k"), "new");
  EXPECT_TRUE(store.erase("k"));
  EXPECT_FALSE(store.has("k"));
  EXPECT_FALSE(store.erase("k"));
}

TEST_P(AnyStore, TheFirstToSetAKeyWins) {
  auto store = make();
  EXPECT_EQ(store.set_if_absent("k", "first"), "first");
  EXPECT_EQ(store.set_if_absent("k", "second"), "first");
  EXPECT_EQ(store.set_if_absent("k", "first"), "first");
  EXPECT_EQ(store.get("k"), "first");
}

TEST_P(AnyStore, Counts) {
  auto store = make();
  EXPECT_EQ(store.add("n", 0), 0);
  EXPECT_EQ(store.add("n", 3), 3);
  EXPECT_EQ(store.add("n", -1), 2);
}

TEST_P(AnyStore, PrefixesKeepKeysApart) {
  auto store = make();
  auto a = store.with_prefix("a");
  auto ab = a.with_prefix("b");
  a.set("k", "1");
  ab.set("k", "2");
  EXPECT_FALSE(store.has("k"));
  EXPECT_EQ(a.get("k"), "1");
  EXPECT_EQ(ab.get("k"), "2");
  EXPECT_EQ(store.get("a/k"), "1");
  EXPECT_EQ(a.get("b/k"), "2");
}

TEST_P(AnyStore, AWaitEndsWhenTheKeyComes) {
  auto store = make();
  std::thread other([store]() mutable {
    std::this_thread::sleep_for(milliseconds(50));
    store.set("k", "v");
  });
  EXPECT_EQ(store.get("k"), "v");
  other.join();
}

TEST_P(AnyStore, AWaitThatTimesOutNamesTheMissingKeys) {
  auto store = make();
  store.set("here", "");
  const auto start = steady_clock::now();
  const auto text = message_of<Timeout>([&] { store.wait({"here", "there", "nowhere"}, milliseconds(100)); });
  EXPECT_CONTAINS(text, "within 0.1 s");
  EXPECT_CONTAINS(text, "no sign of there, nowhere");
  EXPECT_GE(steady_clock::now() - start, milliseconds(100));
  EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
  store.set_timeout(milliseconds(50));
  EXPECT_EQ(store.timeout(), milliseconds(50));
  EXPECT_CONTAINS(message_of<Timeout>([&] { static_cast<void>(store.get("nowhere")); }), "nowhere");
}

TEST_P(AnyStore, AnInterruptEndsAWaitEarly) {
  auto store = make();
  const auto start = steady_clock::now();
  int looks = 0;
  EXPECT_THROW(store.wait({"k"}, kLong,
                          [&looks] {
                            if (++looks == 3) throw RankLost(1, "gone", "test");
                          }),
               RankLost);
  EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
  EXPECT_NO_THROW(store.wait({}, kLong, [] { throw std::runtime_error("not asked when nothing is missing"); }));
}

TEST(FileStore, IsSharedThroughItsFile) {
  const TemporaryFolder folder;
  auto a = Store::file(folder.file("store"), 2, kLong);
  auto b = Store::file(folder.file("store"), 2, kLong);
  a.set("k", "v");
  EXPECT_EQ(b.get("k"), "v");
  EXPECT_EQ(b.port(), 0);
}

TEST(TcpStore, FindsAFreePortAndTellsIt) {
  auto server = Store::tcp("127.0.0.1", 0, true, kLong);
  EXPECT_TRUE(server.is_server());
  ASSERT_GT(server.port(), 0);
  auto client = Store::tcp("127.0.0.1", server.port(), false, kLong);
  EXPECT_FALSE(client.is_server());
  EXPECT_EQ(client.port(), server.port());
  client.set("k", "v");
  EXPECT_EQ(server.get("k"), "v");
  EXPECT_TRUE(server.with_prefix("x").is_server());
}

TEST(TcpStore, APortInUseIsAnErrorThatSaysSo) {
  const auto holder = Store::tcp("127.0.0.1", 0, true, kLong);
  const auto text = message_of<RuntimeError>([&] { Store::tcp("127.0.0.1", holder.port(), true, kLong); });
  EXPECT_CONTAINS(text, "port " + std::to_string(holder.port()));
  EXPECT_CONTAINS(text, "in use");
  EXPECT_CONTAINS(text, "MASTER_PORT");
}

TEST(TcpStore, AClientWithoutAServerTimesOutInTime) {
  const int port = Store::tcp("127.0.0.1", 0, true, kLong).port();  // free again
  const auto start = steady_clock::now();
  const auto text = message_of<Timeout>([&] { Store::tcp("127.0.0.1", port, false, milliseconds(500)); });
  EXPECT_LT(steady_clock::now() - start, milliseconds(2500));
  EXPECT_CONTAINS(text, "127.0.0.1:" + std::to_string(port));
  EXPECT_CONTAINS(text, "within 0.5 s");
  EXPECT_CONTAINS(text, "Start rank 0");
}

TEST(TcpStore, RefusesBadPorts) {
  for (const int port : {-1, 65536, 100000}) {
    EXPECT_CONTAINS(message_of<InvalidArgument>([&] { Store::tcp("127.0.0.1", port, true, kLong); }),
                    "port " + std::to_string(port));
  }
  EXPECT_CONTAINS(message_of<InvalidArgument>([] { Store::tcp("127.0.0.1", 0, false, kLong); }), "port 0");
}

}  // namespace
}  // namespace lockstep::comm
