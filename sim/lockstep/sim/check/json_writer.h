#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

/// Writes JSON. In every rank's process: without a library, whose symbols would meet the user's.
namespace lockstep::sim::json {

/// Length of the UTF-8 character that begins at `at`; 0 if none does.
inline std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

/// Labels, keys and messages are the user's bytes; what is no UTF-8 must not make the document unreadable.
inline std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const auto length = utf8_length(text, at);
    if (c == '"' || c == '\\') {
      (result += '\\') += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned char>(c));
      result += escape.data();
    } else {
      result += length == 0 ? std::string_view("?") : text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result += '"';
}

/// Writes an object field by field.
class Fields {
 public:
  void raw(std::string_view name, std::string_view json) {
    if (text_.size() > 1) text_ += ", ";
    text_ += quoted(name);
    text_ += ": ";
    text_ += json;
  }
  void text(std::string_view name, std::string_view value) { raw(name, quoted(value)); }
  void number(std::string_view name, std::int64_t value) { raw(name, std::to_string(value)); }
  std::string done() { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

template <typename Range, typename ToJson>
std::string array(const Range& range, ToJson&& to_json) {
  std::string text = "[";
  for (const auto& element : range) {
    if (text.size() > 1) text += ", ";
    text += to_json(element);
  }
  return text + "]";
}

}  // namespace lockstep::sim::json
