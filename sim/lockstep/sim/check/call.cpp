#include "lockstep/sim/check/call.h"

#include <algorithm>

namespace lockstep::sim {

std::string_view to_word(Operation operation) {
  static constexpr std::array<std::string_view, 11> kWords = {"allreduce", "broadcast", "allgather", "reduce_scatter",
                                                              "alltoall",  "gather",    "scatter",   "reduce",
                                                              "barrier",   "send",      "recv"};
  return kWords.at(static_cast<std::size_t>(operation));
}

std::string_view form_words(Form form) {
  static constexpr std::array<std::string_view, 4> kWords = {"the plain one", "the one on a single tensor",
                                                             "the coalesced one", "the sparse one"};
  return kWords.at(static_cast<std::size_t>(form));
}

std::string_view reduce_op_word(std::uint8_t op) {
  static constexpr std::array<std::string_view, 9> kWords = {"sum",  "avg", "product", "min",       "max",
                                                             "band", "bor", "bxor",    "premul_sum"};
  return op < kWords.size() ? kWords[op] : "";
}

std::string_view dtype_word(std::uint8_t dtype) {
  // In the order of c10::ScalarType, whose numbers are part of its serialised form and do not change.
  static constexpr std::array<std::string_view, 29> kWords = {"uint8",           "int8",
                                                              "int16",           "int32",
                                                              "int64",           "float16",
                                                              "float32",         "float64",
                                                              "complex32",       "complex64",
                                                              "complex128",      "bool",
                                                              "qint8",           "quint8",
                                                              "qint32",          "bfloat16",
                                                              "quint4x2",        "quint2x4",
                                                              "bits1x8",         "bits2x4",
                                                              "bits4x2",         "bits8",
                                                              "bits16",          "float8_e5m2",
                                                              "float8_e4m3fn",   "float8_e5m2fnuz",
                                                              "float8_e4m3fnuz", "uint16",
                                                              "uint32"};
  return dtype < kWords.size() ? kWords[dtype] : "unknown dtype";
}

std::string_view phase_word(std::uint8_t phase) {
  static constexpr std::array<std::string_view, 7> kWords = {"load", "forward", "backward", "step",
                                                             "eval", "save",    "other"};
  return phase < kWords.size() ? kWords[phase] : "other";
}

void Shapes::add(std::uint8_t dtype, std::span<const std::int64_t> sizes) noexcept {
  hash_ = mix(mix(hash_, dtype), sizes.size());
  for (const auto size : sizes) hash_ = mix(hash_, static_cast<std::uint64_t>(size));
  ++num_tensors_;
  is_cut_ = is_cut_ || num_words_ + 2 + sizes.size() > kMaxWords;
  if (is_cut_) return;
  words_[num_words_++] = dtype;
  words_[num_words_++] = static_cast<std::int64_t>(sizes.size());
  for (const auto size : sizes) words_[num_words_++] = size;
}

std::vector<std::string> describe_tensors(std::span<const std::int64_t> words) {
  std::vector<std::string> tensors;
  while (words.size() >= 2) {
    auto& text = tensors.emplace_back(dtype_word(static_cast<std::uint8_t>(words[0])));
    text += " [";
    const auto num_dims = static_cast<std::size_t>(words[1]);
    const auto sizes = words.subspan(2, std::min(num_dims, words.size() - 2));
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) text += (dim > 0 ? ", " : "") + std::to_string(sizes[dim]);
    text += "]";
    words = words.subspan(2 + sizes.size());
  }
  return tensors;
}

namespace {

// The ends of a point-to-point call must agree on dtype and number of elements; each may shape its own as it likes.
std::uint64_t elements_hash(const Shapes& shapes) noexcept {
  const auto words = shapes.words();
  if (words.size() < 2 || shapes.is_cut()) return shapes.hash();
  std::int64_t num_elements = 1;
  for (const auto size : words.subspan(2)) num_elements *= size;
  return mix(static_cast<std::uint64_t>(words[0]), static_cast<std::uint64_t>(num_elements));
}

}  // namespace

std::uint64_t fingerprint(const Call& call) noexcept {
  if (is_point_to_point(call.operation)) return call.shapes != nullptr ? elements_hash(*call.shapes) : 0;
  auto hash = mix(static_cast<std::uint64_t>(call.operation), static_cast<std::uint64_t>(call.form));
  hash = mix(mix(hash, call.reduce_op), static_cast<std::uint64_t>(call.peer));
  return call.shapes != nullptr ? mix(hash, call.shapes->hash()) : hash;
}

}  // namespace lockstep::sim
