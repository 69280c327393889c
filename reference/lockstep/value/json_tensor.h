#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json_fwd.hpp>

#include <string>

/// The tensor forms of value/json.h. Internal to value/.
namespace lockstep::value {

/// The beginning of `json`, for a message.
std::string excerpt(const nlohmann::ordered_json& json);

/// A float, or the word for one that is not finite.
nlohmann::ordered_json float_to_json(double number);
/// Whether `text` is one of those words.
bool is_float_word(const std::string& text);
/// @throws InvalidArgument  for what is no number
double float_from_json(const nlohmann::ordered_json& json);

nlohmann::ordered_json tensor_to_json(const at::Tensor& tensor);
at::Tensor tensor_from_json(const nlohmann::ordered_json& json);

}  // namespace lockstep::value
