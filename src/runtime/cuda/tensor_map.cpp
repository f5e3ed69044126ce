#include "runtime/cuda/tensor_map.h"

namespace tenon::inline runtime::cuda {
namespace {

// Looked up separately, because old drivers lack it.
template <class Function>
Function found(const char* name) {
  Function function = nullptr;
  driver().library.find(function, name);
  return function;
}

constexpr int kAsItLies = 0, kSwizzled128 = 3, kFetch256 = 3, kZeros = 0;

// Four-byte elements are tf32 operands: TMA rounds them instead of truncating.
int type_of(std::uint32_t element_bytes) {
  constexpr int kOneByte = 0, kTwoBytes = 1, kTf32 = 11;
  return element_bytes == 1 ? kOneByte : element_bytes == 2 ? kTwoBytes : kTf32;
}

}  // namespace

EncodedMap encode_map(const Program::TensorMap& map, std::int64_t rows, std::uint32_t element_bytes,
                      Address address) {
  constexpr std::size_t kMostAxes = 5;
  std::array<std::uint64_t, kMostAxes> extents{}, pitch_bytes{};
  std::array<std::uint32_t, kMostAxes> box{}, steps{};
  const std::size_t inside = map.extents.size();
  for (std::size_t k = 0; k <= inside; ++k) {
    extents[k] = k < inside ? map.extents[k] : static_cast<std::uint64_t>(rows);
    if (k < inside) pitch_bytes[k] = map.pitches[k] * element_bytes;
    box[k] = static_cast<std::uint32_t>(map.box[k]);
    steps[k] = static_cast<std::uint32_t>(map.steps[k]);
  }
  const auto axes = static_cast<unsigned>(inside + 1);
  auto* const memory = reinterpret_cast<void*>(address);
  EncodedMap made{};
  if (map.before.empty()) {
    using Encode =
        int (*)(EncodedMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                const std::uint32_t*, const std::uint32_t*, int, int, int, int);
    static const auto encode = found<Encode>("cuTensorMapEncodeTiled");
    driver().require(
        encode(&made, type_of(element_bytes), axes, memory, extents.data(), pitch_bytes.data(),
               box.data(), steps.data(), kAsItLies, kSwizzled128, kFetch256, kZeros),
        "describing a tensor");
    return made;
  }
  using Encode = int (*)(EncodedMap*, int, unsigned, void*, const std::uint64_t*,
                         const std::uint64_t*, const int*, const int*, std::uint32_t, std::uint32_t,
                         const std::uint32_t*, int, int, int, int);
  static const auto encode = found<Encode>("cuTensorMapEncodeIm2col");
  std::array<int, 2> lower{}, upper{};
  for (std::size_t k = 0; k < 2; ++k) {
    lower[k] = -static_cast<int>(map.before[k]);
    upper[k] = static_cast<int>(Program::last_place(map, k));
  }
  driver().require(encode(&made, type_of(element_bytes), axes, memory, extents.data(),
                          pitch_bytes.data(), lower.data(), upper.data(), box[0], box[1],
                          steps.data(), kAsItLies, kSwizzled128, kFetch256, kZeros),
                   "describing images");
  return made;
}

}  // namespace tenon::inline runtime::cuda
