#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// RFC 4648, section 4: the plain alphabet with padding. Internal to value/.
namespace lockstep::value {

std::string to_base64(std::span<const std::uint8_t> bytes);

/// None for text that is no base64, unpadded text included.
std::optional<std::vector<std::uint8_t>> from_base64(std::string_view text);

}  // namespace lockstep::value
