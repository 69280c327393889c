#include "lockstep/data/data_loader.h"

#include <torch/utils.h>

#include <mutex>
#include <set>

#include "lockstep/data/data_testing.h"
#include "lockstep/data/thread_counter.h"
#include "lockstep/random/generator.h"

namespace lockstep::data {
namespace {

using namespace std::chrono_literals;
using test::Batches;
using test::drain_loader;
using test::Ids;
using test::Indices;
using test::ListBatches;
using test::ListSampler;
using test::message_of;
using test::ThreadCounter;

// Fails at one index; counts what was got.
struct Fragile {
  std::size_t count;
  std::size_t bad;
  std::atomic<int> got{0};
  Fragile(std::size_t n, std::size_t bad_index) : count(n), bad(bad_index) {}
  [[nodiscard]] std::size_t size() const { return count; }
  at::Tensor get(std::size_t i) {
    ++got;
    if (i == bad) throw std::out_of_range("no such row");
    return test::id(i);
  }
};

TEST(DataLoader, HandsOutBatchesInOrder) {
  DataLoader loader(Ids{7}, {.batch_size = 3});
  EXPECT_EQ(drain_loader(loader), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(loader.length(), 3);
  DataLoader dropping(Ids{7}, {.batch_size = 3, .drop_last = true});
  EXPECT_EQ(drain_loader(dropping), (Batches{{0, 1, 2}, {3, 4, 5}}));
  DataLoader by_default(Ids{2});
  EXPECT_EQ(drain_loader(by_default), (Batches{{0}, {1}}));
}

// The orders of PyTorch in Python after the same seeds: the loader draws once per pass, then its sampler.
TEST(DataLoader, ShufflesLikePytorch) {
  DataLoader own(Ids{6}, {.batch_size = 4, .shuffle = true, .generator = random::make_generator(3)});
  EXPECT_EQ(drain_loader(own), (Batches{{1, 3, 2, 0}, {4, 5}}));
  EXPECT_EQ(drain_loader(own), (Batches{{0, 5, 1, 3}, {4, 2}}));
  torch::manual_seed(3);
  DataLoader by_default(Ids{6}, {.batch_size = 4, .shuffle = true});
  EXPECT_EQ(drain_loader(by_default), (Batches{{2, 4, 0, 1}, {3, 5}}));
  EXPECT_EQ(drain_loader(by_default), (Batches{{3, 2, 0, 1}, {4, 5}}));
}

TEST(DataLoader, TakesSamplersAndBatchSamplers) {
  DataLoader with_sampler(Ids{4}, {.batch_size = 2, .sampler = std::make_shared<ListSampler>(Indices{3, 1, 0})});
  EXPECT_EQ(drain_loader(with_sampler), (Batches{{3, 1}, {0}}));
  DataLoader with_batches(Ids{4}, {.batch_sampler = std::make_shared<ListBatches>(Batches{{3}, {1, 0}})});
  EXPECT_EQ(drain_loader(with_batches), (Batches{{3}, {1, 0}}));
  EXPECT_EQ(with_batches.batch_size(), std::nullopt);
  EXPECT_EQ(with_batches.sampler(), nullptr);
}

// DATA-008: batches may also come from the sampler.
TEST(DATA_008, ASamplerMayYieldWholeBatches) {
  const auto batches = std::make_shared<ListBatches>(Batches{{3}, {1, 0}});
  DataLoader loader(Ids{4}, {.batch_size = std::nullopt, .sampler = batches});
  EXPECT_EQ(drain_loader(loader), (Batches{{3}, {1, 0}}));
}

TEST(DataLoader, WithoutBatchesHandsOutItemsAsTheyAre) {
  DataLoader loader(Ids{3}, {.batch_size = std::nullopt});
  EXPECT_EQ(drain_loader(loader), (Batches{{0}, {1}, {2}}));
  EXPECT_EQ((*loader.begin()).tensor().dim(), 0);
  EXPECT_EQ(loader.length(), 3);
  EXPECT_EQ(loader.batch_sampler(), nullptr);
}

TEST(DataLoader, CollatesAsTold) {
  const auto count = [](const std::vector<Value>& items) { return Value(items.size()); };
  DataLoader loader(Ids{5}, {.batch_size = 3, .collate = count});
  std::vector<std::int64_t> sizes;
  for (auto& batch : loader) sizes.push_back(batch.integer());
  EXPECT_EQ(sizes, (Indices{3, 2}));
}

TEST(DataLoader, GivesTheSameBatchesWithWorkers) {
  for (const int num_workers : {1, 2, 5}) {
    DataLoader loader(Ids{50}, {.batch_size = 3, .num_workers = num_workers, .prefetch_factor = 1});
    DataLoader alone(Ids{50}, {.batch_size = 3});
    EXPECT_EQ(drain_loader(loader), drain_loader(alone));
    EXPECT_EQ(drain_loader(loader).size(), 17u);  // a second pass has workers of its own
  }
}

TEST(DataLoader, GetsItemsOnItsWorkersOnly) {
  struct Threads {
    std::mutex mutex;
    std::set<std::thread::id> ids;
    [[nodiscard]] std::size_t size() const { return 20; }
    at::Tensor get(std::size_t) {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
      return at::zeros({1});
    }
  };
  const auto dataset = std::make_shared<Threads>();
  DataLoader loader(dataset, {.num_workers = 2});
  for (auto& batch : loader) EXPECT_TRUE(batch.is_tensor());
  EXPECT_FALSE(dataset->ids.contains(std::this_thread::get_id()));
  EXPECT_GE(dataset->ids.size(), 1u);
}

TEST(DataLoader, ReadsAtMostPrefetchFactorTimesWorkersAhead) {
  const auto dataset = std::make_shared<Fragile>(100, 1000);
  DataLoader loader(dataset, {.num_workers = 2, .prefetch_factor = 3});
  auto pass = loader.pass();
  for (int step = 1; step <= 10; ++step) {
    pass->next();
    std::this_thread::sleep_for(2ms);
    EXPECT_LE(dataset->got, step - 1 + 6);
  }
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (dataset->got < 15 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(dataset->got, 15);  // it does read ahead
}

TEST(DataLoader, ThrowsWhatAnItemThrowsAtItsBatchAndNamesTheIndex) {
  for (const int num_workers : {0, 2}) {
    ThreadCounter threads;
    DataLoader loader(std::make_shared<Fragile>(10, 5),
                      {.batch_size = 2, .num_workers = num_workers, .start_thread = threads.starter()});
    auto pass = loader.pass();
    EXPECT_EQ(test::to_indices(*pass->next()), (Indices{0, 1}));
    EXPECT_EQ(test::to_indices(*pass->next()), (Indices{2, 3}));
    EXPECT_EQ(message_of<DatasetError>([&] { pass->next(); }), "dataset.get(5): no such row");
    EXPECT_EQ(threads.started, num_workers);
    EXPECT_EQ(threads.running, 0);  // though the pass is still there
    EXPECT_EQ(pass->next(), std::nullopt);
  }
}

TEST(DataLoader, EndsItsThreadsWhenALoopIsLeft) {
  ThreadCounter threads;
  DataLoader loader(Ids{100}, {.num_workers = 2, .start_thread = threads.starter()});
  for (auto& batch : loader) {
    EXPECT_EQ(threads.running, 2);
    if (batch.tensor().item<std::int64_t>() == 3) break;
  }
  EXPECT_EQ(threads.running, 0);
  const auto thrown_out_of_the_loop = [&] {
    for (auto& batch : loader) throw std::runtime_error(to_text(batch));
  };
  EXPECT_THROW(thrown_out_of_the_loop(), std::runtime_error);
  EXPECT_EQ(threads.running, 0);
  EXPECT_EQ(threads.started, 4);
  for (auto& batch : loader) static_cast<void>(batch);
  EXPECT_EQ(threads.running, 0);
}

TEST(DataLoader, SeedsItsWorkersFromItsGenerator) {
  std::mutex mutex;
  std::set<std::int64_t> seeds;
  const auto remember = [&](const WorkerInfo& who) {
    const std::lock_guard lock(mutex);
    seeds.insert(who.seed - who.id);
  };
  DataLoader loader(Ids{20}, {.num_workers = 2, .generator = random::make_generator(3), .worker_init = remember});
  drain_loader(loader);
  EXPECT_EQ(seeds, (std::set<std::int64_t>{random::draw_seed(random::make_generator(3))}));
}

TEST(DataLoader, SaysWhenABatchDoesNotComeInTime) {
  struct Slow {
    [[nodiscard]] std::size_t size() const { return 2; }
    at::Tensor get(std::size_t) {
      std::this_thread::sleep_for(200ms);
      return at::zeros({1});
    }
  };
  ThreadCounter threads;
  DataLoader loader(Slow{}, {.num_workers = 1, .timeout = 10ms, .start_thread = threads.starter()});
  EXPECT_EQ(message_of<Timeout>([&] { static_cast<void>(loader.begin()); }),
            "data loader: expected batch 0 of the pass within 10 ms, got none from its worker. "
            "Raise timeout, or look at what the dataset waits for.");
  while (threads.running != 0) std::this_thread::yield();
}

TEST(DataLoader, RefusesASecondPassBesideTheFirst) {
  DataLoader loader(Ids{4}, {.batch_size = 2});
  auto first = loader.pass();
  auto second = loader.pass();
  EXPECT_EQ(message_of<RuntimeError>([&] { first->next(); }),
            "DataLoader: expected one pass over a loader at a time, "
            "got a batch of a pass that ended when another began. "
            "Use a second loader, with samplers of its own, for nested passes.");
  EXPECT_EQ(test::to_indices(*second->next()), (Indices{0, 1}));
}

TEST(DataLoader, ChangesItsOrderInACopyOnly) {
  const DataLoader loader(Ids{4}, {.batch_size = 3, .drop_last = true});
  auto backwards = loader.with_sampler(std::make_shared<ListSampler>(Indices{3, 2, 1, 0}));
  EXPECT_EQ(drain_loader(backwards), (Batches{{3, 2, 1}}));
  EXPECT_EQ(drain_loader(loader), (Batches{{0, 1, 2}}));
  const DataLoader rigid(Ids{1}, {.batch_sampler = std::make_shared<ListBatches>(Batches{{0}})});
  EXPECT_THROW(static_cast<void>(rigid.with_sampler(nullptr)), InvalidArgument);
}

void expect_refused(DataLoaderOptions options, const std::string& message) {
  EXPECT_EQ(message_of<InvalidArgument>([&] { DataLoader(Ids{4}, options); }), "DataLoader: " + message);
}

TEST(DataLoader, RefusesOptionsThatExcludeEachOther) {
  const auto indices = std::make_shared<ListSampler>(Indices{0});
  const auto batches = std::make_shared<ListBatches>(Batches{{0}});
  expect_refused({.shuffle = true, .sampler = indices},
                 "expected either a sampler or shuffle=true, got both. Shuffle in the sampler.");
  expect_refused({.batch_size = 2, .batch_sampler = batches},
                 "expected a batch_sampler alone, got also one of batch_size, shuffle, sampler, drop_last. "
                 "The batch sampler decides all of these.");
  expect_refused({.batch_size = 2, .sampler = batches},
                 "expected batch_size to be unset with a sampler that yields whole batches, got batch_size 2. "
                 "Pass batch_size=std::nullopt, or a sampler of indices.");
  expect_refused({.batch_size = std::nullopt, .drop_last = true},
                 "expected drop_last=false without batches, got batch_size unset and drop_last=true");
  expect_refused({.batch_size = 0}, "expected batch_size to be positive, got batch_size 0");
  expect_refused({.num_workers = -1}, "expected num_workers not to be negative, got num_workers -1");
  expect_refused({.prefetch_factor = 2},
                 "expected workers to prefetch, got prefetch_factor without num_workers. Give num_workers at least 1.");
  expect_refused({.timeout = 1ms},
                 "expected workers to wait for, got timeout without num_workers. Give num_workers at least 1.");
  expect_refused({.num_workers = 1, .prefetch_factor = 0},
                 "expected prefetch_factor to be positive, got prefetch_factor 0");
  const std::string empty = "expected a sampler, got an empty pointer. Leave it out, or make it first.";
  expect_refused({.batch_size = std::nullopt, .sampler = std::shared_ptr<Sampler>()}, empty);
  expect_refused({.batch_size = std::nullopt, .sampler = std::shared_ptr<BatchSampler>()}, empty);
  EXPECT_THROW(DataLoader(Ids{1}).with_sampler(nullptr), InvalidArgument);
  EXPECT_THROW(DataLoader(Ids{1}).with_batch_sampler(nullptr), InvalidArgument);
  expect_refused({.batch_size = std::nullopt, .collate = default_collate},
                 "expected batches to collate, got a collate function, and batch_size unset. "
                 "Convert items in the dataset.");
}

}  // namespace
}  // namespace lockstep::data
