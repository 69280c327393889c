#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <memory>
#include <type_traits>

namespace torch::optim {
class LRScheduler;
}

namespace lockstep {

namespace optim {
class Scheduler;
}

// What prepare() takes for a model: a TORCH_MODULE holder, or a shared pointer to a module.

template <typename T>
struct IsSharedModule : std::false_type {};
template <std::derived_from<torch::nn::Module> Net>
struct IsSharedModule<std::shared_ptr<Net>> : std::true_type {};

template <typename T>
concept ModuleHolderLike = requires(const T& holder) {
  typename T::ContainedType;
  { holder.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
};

template <typename T>
concept ModuleHandle = IsSharedModule<T>::value || ModuleHolderLike<T>;

// What it does not take although it looks so: passed on as it is, it would train wrongly without a word.

template <typename T>
concept TorchLoader = requires(T& loader) {
  typename T::element_type::BatchType;
  loader->options();
};
template <typename T>
concept TorchSchedule = std::derived_from<T, torch::optim::LRScheduler> ||
    std::convertible_to<T, std::shared_ptr<torch::optim::LRScheduler>>;

template <typename T>
constexpr void require_preparable() {
  static_assert(!std::derived_from<T, torch::nn::Module>,
                "prepare() takes a shared_ptr to the module, or a module holder");
  static_assert(!TorchLoader<T>, "prepare() takes a lockstep::data::DataLoader in the place of a torch::data one");
  static_assert(!TorchSchedule<T>, "prepare() takes a shared_ptr to an optim::Scheduler: wrap it in optim::from_torch");
  static_assert(!std::derived_from<T, optim::Scheduler>, "prepare() takes a shared_ptr to the scheduler");
}

template <typename Net>
std::shared_ptr<Net> module_of(const std::shared_ptr<Net>& module) {
  return module;
}
template <ModuleHolderLike Holder>
std::shared_ptr<typename Holder::ContainedType> module_of(const Holder& holder) {
  return holder ? holder.ptr() : nullptr;
}

}  // namespace lockstep
