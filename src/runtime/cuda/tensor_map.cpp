#include "runtime/cuda/tensor_map.h"

namespace tenon::cuda {

EncodedMap encode_map(const Program::TensorMap& map, std::int64_t rows, std::uint32_t element_bytes,
                      Address address) {
  using Encode =
      int (*)(EncodedMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
              const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  const Driver& cuda = driver();
  // Not among the driver's other functions: old ones do without it.
  static const Encode encode = [&] {
    Encode found = nullptr;
    cuda.library.find(found, "cuTensorMapEncodeTiled");
    return found;
  }();
  constexpr int kOneByte = 0, kTwoBytes = 1, kFourBytes = 2, kAsItLies = 0, kSwizzled128 = 3,
                kFetch256 = 3, kZeros = 0;
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
  EncodedMap made{};
  cuda.require(encode(&made,
                      element_bytes == 1   ? kOneByte
                      : element_bytes == 2 ? kTwoBytes
                                           : kFourBytes,
                      static_cast<unsigned>(inside + 1), reinterpret_cast<void*>(address),
                      extents.data(), pitch_bytes.data(), box.data(), steps.data(), kAsItLies,
                      kSwizzled128, kFetch256, kZeros),
               "describing a tensor");
  return made;
}

}  // namespace tenon::cuda
