// Trains a small convolutional net on handwritten digits, on one rank or several.
//
//   01_train_digits --num_processes 3 --epochs 5 --seed 1     starts three ranks on this machine
//   torchrun --no-python --nproc_per_node 2 01_train_digits   is one rank of the environment
#include <fmt/format.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "digits.h"
#include "lockstep/accelerator/accelerator.h"
#include "lockstep/base/exit_code.h"
#include "lockstep/launch/debug_launcher.h"
#include "lockstep/random/seeding.h"

namespace {

using lockstep::Accelerator;
using lockstep::Value;

struct Arguments {
  int num_processes = 0;  // 0: this process is one rank of the environment
  int epochs = 5;
  int batch_size = 16;  // per rank
  std::int64_t seed = 1;
  double learning_rate = 5e-3;
  int num_workers = 0;
  std::string data = LOCKSTEP_EXAMPLE_DATA;
};

// What this rank was given in an epoch, as the event stream tells it.
struct Seen {
  std::int64_t samples = 0;
  std::int64_t repeated = 0;
};

template <typename Model, typename Loader>
double evaluate(Accelerator& accelerator, Model& model, Loader& loader) {
  const torch::NoGradGuard no_grad;
  model->eval();
  std::int64_t right = 0;
  std::int64_t total = 0;
  for (const Value& batch : *loader) {
    const auto predictions = model(batch[0].tensor()).argmax(1);
    const auto all = accelerator.gather_for_metrics(Value::tuple({predictions, batch[1]}));
    right += all[0].tensor().eq(all[1].tensor()).sum().template item<std::int64_t>();
    total += all[1].tensor().size(0);
  }
  model->train();
  return static_cast<double>(right) / static_cast<double>(total);
}

void print_epoch(Accelerator& accelerator, int epoch, double loss, const Seen& seen, double seconds) {
  // Sums and lists over the ranks: every rank takes part, the main one prints.
  const auto mean = accelerator.reduce(torch::full({1}, loss, torch::kDouble), lockstep::comm::Reduction::mean);
  const auto counts = accelerator.gather(torch::tensor({{seen.samples, seen.repeated}}, torch::kLong)).tensor();
  const auto samples = counts.select(1, 0);
  auto text = fmt::format("epoch {} loss {:.4f} samples", epoch, mean.tensor().item<double>());
  for (std::int64_t rank = 0; rank < samples.size(0); ++rank)
    text += fmt::format(" {}", samples[rank].item<std::int64_t>());
  text += fmt::format(" ({} repeated) {:.2f} s", counts.select(1, 1).sum().item<std::int64_t>(), seconds);
  accelerator.print(text);
}

void train(const Arguments& arguments) {
  Accelerator accelerator({.cpu = true});
  lockstep::random::set_seed(arguments.seed);
  const auto data = digits::load(arguments.data);
  lockstep::data::DataLoader train_data(
      data.train, {.batch_size = arguments.batch_size, .shuffle = true, .num_workers = arguments.num_workers});
  lockstep::data::DataLoader test_data(data.test, {.batch_size = arguments.batch_size});
  digits::Net net;
  const auto adam =
      std::make_shared<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(arguments.learning_rate));
  // Written for one process: a prepared scheduler moves by as many steps at a time as there are ranks.
  const auto total_steps = static_cast<double>(arguments.epochs * train_data.length());
  const auto decay = std::make_shared<lockstep::optim::LambdaLr>(
      adam, [total_steps](std::int64_t step) { return std::max(0.0, 1.0 - static_cast<double>(step) / total_steps); });
  auto [model, optimizer, scheduler, train_loader, test_loader] =
      accelerator.prepare(net, adam, decay, train_data, test_data);

  Seen seen;
  const auto subscription =
      accelerator.account().subscribe([&seen](const auto&, const lockstep::accounting::Event& event) {
        const auto* batch = std::get_if<lockstep::accounting::Batch>(&event);
        if (batch == nullptr) return;
        seen.samples += static_cast<std::int64_t>(batch->indices.size());
        seen.repeated += batch->padding;
      });
  for (int epoch = 1; epoch <= arguments.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    seen = {};
    double loss_sum = 0;
    int steps = 0;
    for (const Value& batch : *train_loader) {
      const auto loss = torch::cross_entropy_loss(model(batch[0].tensor()), batch[1].tensor());
      accelerator.backward(loss);
      optimizer->step();
      scheduler->step();
      optimizer->zero_grad();
      loss_sum += loss.template item<double>();
      ++steps;
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    print_epoch(accelerator, epoch, loss_sum / steps, seen, time.count());
  }
  accelerator.print(fmt::format("accuracy {:.4f}", evaluate(accelerator, model, test_loader)));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Trains a small net on handwritten digits."};
  const CLI::Validator positive(
      [](const std::string& text) {
        double number = 0;
        const bool good = CLI::detail::lexical_cast(text, number) && number > 0;
        return good ? std::string() : "expected a positive number, got '" + text + "'";
      },
      "POSITIVE");
  app.option_defaults()->always_capture_default();
  app.add_option("--num_processes", arguments.num_processes,
                 "start this many ranks here; without it, be one of the environment")
      ->check(positive);
  app.add_option("--epochs", arguments.epochs)->check(positive);
  app.add_option("--batch_size", arguments.batch_size, "samples per rank and step")->check(positive);
  app.add_option("--seed", arguments.seed);
  app.add_option("--learning_rate", arguments.learning_rate)->check(positive);
  app.add_option("--num_workers", arguments.num_workers, "loader threads per rank")->check(CLI::NonNegativeNumber);
  app.add_option("--data", arguments.data, "digits.csv")->check(CLI::ExistingFile);
  try {
    app.parse(argc, argv);
    if (arguments.num_processes == 0) {
      train(arguments);
    } else {
      // Only the main process prints, so lines need no label.
      lockstep::launch::debug_launcher([&arguments] { train(arguments); }, arguments.num_processes,
                                       {.output = lockstep::launch::Output::inherited});
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? to_int(lockstep::ExitCode::ok) : to_int(lockstep::ExitCode::usage);
  } catch (const lockstep::ChildFailed& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return to_int(lockstep::ExitCode::rank_failed);
  } catch (const lockstep::InvalidArgument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return to_int(lockstep::ExitCode::usage);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return to_int(lockstep::ExitCode::rank_failed);
  }
  return to_int(lockstep::ExitCode::ok);
}
