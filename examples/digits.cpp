#include "digits.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

#include "lockstep/base/error.h"

namespace digits {
namespace {

constexpr std::size_t kPixels = 64;
constexpr float kWhite = 16;
constexpr std::int64_t kEvery = 5;  // one sample in five is for testing: neighbours in the file are by the same writer

float number_in(const std::string& cell, const std::string& place) {
  float number = 0;
  const auto* const end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  throw lockstep::InvalidArgument({.where = place, .expected = "a number", .got = "'" + cell + "'"});
}

std::vector<float> numbers_in(const std::string& line, const std::string& place) {
  std::istringstream cells(line);
  std::vector<float> row;
  for (std::string cell; std::getline(cells, cell, ',');) {
    row.push_back(number_in(cell, place + ", column " + std::to_string(row.size() + 1)));
  }
  if (row.size() == kPixels + 1) return row;
  throw lockstep::InvalidArgument({.where = place, .expected = "65 numbers", .got = std::to_string(row.size())});
}

}  // namespace

Data load(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw lockstep::FileError("cannot read " + path + "; pass --data FILE");
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::string line; std::getline(file, line);) {
    const auto row = numbers_in(line, path + ", line " + std::to_string(labels.size() + 1));
    pixels.insert(pixels.end(), row.begin(), row.end() - 1);
    labels.push_back(static_cast<std::int64_t>(row.back()));
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  if (count < kEvery) {
    throw lockstep::InvalidArgument({.where = path, .expected = "1797 lines", .got = std::to_string(count)});
  }
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
