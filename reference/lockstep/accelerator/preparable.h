#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <concepts>
#include <memory>
#include <type_traits>

namespace lockstep {

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

template <typename Net>
const std::shared_ptr<Net>& module_of(const std::shared_ptr<Net>& module) {
  return module;
}
template <ModuleHolderLike Holder>
const std::shared_ptr<typename Holder::ContainedType>& module_of(const Holder& holder) {
  return holder.ptr();
}

}  // namespace lockstep
