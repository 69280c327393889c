#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>

namespace digits {

/// Handwritten digits: 8x8 grey images and their labels (fixtures/data/README.md).
class Dataset {
 public:
  Dataset(torch::Tensor images, torch::Tensor labels) : images_(std::move(images)), labels_(std::move(labels)) {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(labels_.size(0)); }
  [[nodiscard]] torch::data::Example<> get(std::size_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    return {images_[i], labels_[i]};
  }

 private:
  torch::Tensor images_;
  torch::Tensor labels_;
};

struct Data {
  Dataset train;  ///< 1,438 of the 1,797
  Dataset test;   ///< every fifth, 359: neither 2 nor 3 ranks divide them
};

/// @throws FileError        when the file cannot be read
/// @throws InvalidArgument  when it is not 65 numbers a line, naming the line, the column and what stands there
Data load(const std::string& path);

/// Two convolutions and two linear layers, 75,000 parameters.
struct NetImpl : torch::nn::Module {
  NetImpl();
  /// @param images  [n, 1, 8, 8], float
  /// @return logits  [n, 10]
  torch::Tensor forward(const torch::Tensor& images);

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::Linear fc1{nullptr};
  torch::nn::Linear fc2{nullptr};
};
TORCH_MODULE(Net);

}  // namespace digits
