// Legal, however odd: uneven times, uneven data, and what only some ranks do in a training program.
#include <chrono>
#include <cstdio>
#include <sstream>
#include <thread>

#include "lockstep/accelerator/accelerator.h"
#include "lockstep/sim/gallery/gallery.h"

namespace lockstep::sim::gallery {
namespace {

using std::chrono::milliseconds;

// Ranks take turns in being slow. Whoever computes is waited for, and not accused.
LOCKSTEP_LEGAL(legal_uneven_times, 3) {
  const auto gradient = torch::ones({8});
  for (int step = 0; step < 6; ++step) {
    if (step % 3 == rank.rank()) std::this_thread::sleep_for(milliseconds(400));
    rank.world().all_reduce(gradient).wait();
  }
}

// After their last common call ranks end when they like, the one with the store first.
LOCKSTEP_LEGAL(legal_ranks_leave_one_by_one, 4) {
  rank.world().barrier().wait();
  std::this_thread::sleep_for(milliseconds(200 * rank.rank()));
}

// The main process has nothing more to do, the others still talk among themselves.
LOCKSTEP_LEGAL(legal_main_process_leaves_first, 3) {
  const auto others = rank.world().new_group({1, 2}, "others");
  rank.world().barrier().wait();
  if (!others) return;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    others.all_reduce(torch::ones({4})).wait();
  }
}

// Two ranks wait for a key that a third one sets when it has worked for a while.
LOCKSTEP_LEGAL(legal_key_that_is_set_late, 3) {
  auto store = rank.store();
  if (rank.rank() == 0) {
    std::this_thread::sleep_for(milliseconds(500));
    store.set("index", "built");
  }
  std::printf("the index is %s\n", store.get("index").c_str());
  rank.world().barrier().wait();
}

// Instead of waiting for a key one may look for it now and then.
LOCKSTEP_LEGAL(legal_key_that_is_looked_for, 3) {
  auto store = rank.store();
  if (rank.rank() == 2) {
    while (!store.has("go")) std::this_thread::sleep_for(milliseconds(50));
  } else {
    std::this_thread::sleep_for(milliseconds(300));
    store.set("go", "yes");
  }
  rank.world().barrier().wait();
}

// Whoever comes last opens the door. Who that is differs from run to run.
LOCKSTEP_LEGAL(legal_last_one_sets_the_key, 4) {
  auto store = rank.store();
  std::this_thread::sleep_for(milliseconds(50 * ((rank.rank() * 3) % 4)));
  if (store.add("arrived", 1) == rank.world_size()) store.set("all_here", "yes");
  static_cast<void>(store.get("all_here"));
  rank.world().barrier().wait();
}

// Ranks print as much as they like, in whatever order it comes.
LOCKSTEP_LEGAL(legal_ranks_print_unequally, 3) {
  for (int step = 0; step < 3; ++step) {
    for (int line = 0; line < 40 * rank.rank(); ++line) std::printf("step %d, line %d\n", step, line);
    rank.world().barrier().wait();
  }
}

// An exception that is caught before any call is missed harms nobody.
LOCKSTEP_LEGAL(legal_exception_that_is_caught, 3) {
  double learning_rate = 0.1;
  try {
    learning_rate = std::stod(rank.rank() == 1 ? "default" : "0.1");
  } catch (const std::invalid_argument&) {
    std::printf("rank %d keeps the default\n", rank.rank());
  }
  rank.world().all_reduce(torch::full({1}, learning_rate)).wait();
}

// monitored_barrier() is rank 0's watch over the others, who may take some time.
LOCKSTEP_LEGAL(legal_monitored_barrier, 3) {
  std::this_thread::sleep_for(milliseconds(150 * rank.rank()));
  rank.world().monitored_barrier(std::chrono::seconds(20));
  rank.world().barrier().wait();
}

/// Two branches, of which a forward may take either, or both.
struct BranchesImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, int branch) {
    if (branch == 2) return (first->forward(x) + second->forward(x)).mean();
    return (branch == 0 ? first : second)->forward(x).mean();
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(4, 2));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(4, 2));
};
TORCH_MODULE(Branches);

// With the search for unused parameters each rank may take another branch.
LOCKSTEP_LEGAL(legal_branches_with_a_search, 3) {
  Accelerator accelerator({.cpu = true, .ddp_kwargs = {.find_unused_parameters = true}});
  const auto model = accelerator.prepare(Branches());
  for (int step = 0; step < 5; ++step) {
    accelerator.backward(model(torch::ones({2, 4}), (rank.rank() + step) % 3));
    model->zero_grad();
  }
}

// Without synchronisation a rank may run as many micro-batches as it has.
LOCKSTEP_LEGAL(legal_no_sync_of_unequal_lengths, 3) {
  Accelerator accelerator({.cpu = true});
  const auto model = accelerator.prepare(Branches());
  for (int step = 0; step < 4; ++step) {
    {
      const auto local = accelerator.no_sync(model);
      for (int i = 0; i <= rank.rank(); ++i) accelerator.backward(model(torch::ones({2, 4}), 2));
    }
    accelerator.backward(model(torch::ones({2, 4}), 2));
    model->zero_grad();
  }
}

struct TenSamples {
  std::size_t size() const { return 10; }
  torch::Tensor get(std::size_t index) const { return torch::full({4}, static_cast<double>(index)); }
};

// Ten samples on three ranks, and windows that the epoch's end cuts short: all of it is made even by the loader.
LOCKSTEP_LEGAL(legal_accumulation_over_uneven_data, 3) {
  Accelerator accelerator({.gradient_accumulation_steps = 3, .cpu = true});
  Branches net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  const data::DataLoader samples(TenSamples(), {.batch_size = 2, .shuffle = true});
  auto [model, optimizer, loader] = accelerator.prepare(net, std::move(sgd), samples);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Value& batch : *loader) {
      const auto window = accelerator.accumulate(model);
      accelerator.backward(model(batch.tensor(), 2));
      optimizer->step();
      optimizer->zero_grad();
    }
  }
}

// What is gathered as objects may have any size.
LOCKSTEP_LEGAL(legal_objects_of_unequal_size, 3) {
  const Accelerator accelerator({.cpu = true});
  std::vector<Value> words(static_cast<std::size_t>(rank.rank() * 3), Value("word"));
  const auto all = accelerator.gather_object(Value::list(words));
  const auto tokens = torch::ones({2, 3 + rank.rank()});
  const auto padded = accelerator.pad_across_processes(tokens, {.dim = 1});
  const auto together = accelerator.gather(padded);
}

// The main process goes first, and takes its time.
LOCKSTEP_LEGAL(legal_main_process_first, 3) {
  const Accelerator accelerator({.cpu = true});
  {
    const auto first = accelerator.main_process_first();
    if (accelerator.is_main_process()) std::this_thread::sleep_for(milliseconds(400));
  }
  accelerator.wait_for_everyone();
}

// The main process alone writes a file between two barriers that all come to.
LOCKSTEP_LEGAL(legal_main_process_saves, 3) {
  const Accelerator accelerator({.cpu = true});
  const auto weights = accelerator.gather(torch::ones({2, 4}));
  accelerator.wait_for_everyone();
  if (accelerator.is_main_process()) {
    std::ostringstream file;
    torch::save(weights.tensor(), file);
    std::this_thread::sleep_for(milliseconds(200));
  }
  accelerator.wait_for_everyone();
}

}  // namespace
}  // namespace lockstep::sim::gallery
