#include "digits.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace digits {
namespace {

constexpr std::int64_t kPixels = 64;
constexpr float kWhite = 16;
constexpr std::int64_t kEvery = 5;  // one sample in five is for testing: neighbours in the file are by the same writer

}  // namespace

Data load(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path + "; pass --data FILE");
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::vector<float> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stof(cell));
    if (row.size() != kPixels + 1) {
      throw std::runtime_error(path + ": expected 65 numbers a line, got " + std::to_string(row.size()));
    }
    pixels.insert(pixels.end(), row.begin(), row.end() - 1);
    labels.push_back(static_cast<std::int64_t>(row.back()));
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  if (count < kEvery) throw std::runtime_error(path + ": expected 1797 lines, got " + std::to_string(count));
  const auto images = torch::tensor(pixels).view({count, 1, 8, 8}) / kWhite;
  const auto targets = torch::tensor(labels, torch::kLong);
  const auto is_test = torch::arange(count).remainder(kEvery).eq(kEvery - 1);
  return {Dataset(images.index({~is_test}), targets.index({~is_test})),
          Dataset(images.index({is_test}), targets.index({is_test}))};
}

NetImpl::NetImpl() {
  using torch::nn::Conv2dOptions;
  conv1 = register_module("conv1", torch::nn::Conv2d(Conv2dOptions(1, 16, 3).padding(1)));
  conv2 = register_module("conv2", torch::nn::Conv2d(Conv2dOptions(16, 32, 3).padding(1)));
  fc1 = register_module("fc1", torch::nn::Linear(32 * 4 * 4, 128));
  fc2 = register_module("fc2", torch::nn::Linear(128, 10));
}

torch::Tensor NetImpl::forward(const torch::Tensor& images) {
  auto x = torch::relu(conv1->forward(images));
  x = torch::max_pool2d(torch::relu(conv2->forward(x)), 2);
  return fc2->forward(torch::relu(fc1->forward(x.flatten(1))));
}

}  // namespace digits
