#include "runtime/cuda/tensor_map.h"

namespace tenon::cuda {

EncodedMap encode_map(const Program::TensorMap& map, std::int64_t rows, Address address) {
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
  constexpr int kTwoBytes = 1, kAsItLies = 0, kSwizzled128 = 3, kFetch256 = 3, kZeros = 0;
  constexpr unsigned kRank = 2;
  const std::array<std::uint64_t, kRank> extents = {map.columns, static_cast<std::uint64_t>(rows)};
  const std::uint64_t row_bytes = std::uint64_t{2} * map.pitch;
  const std::array<std::uint32_t, kRank> box = {map.box_columns, map.box_rows}, steps = {1, 1};
  EncodedMap made{};
  cuda.require(
      encode(&made, kTwoBytes, kRank, reinterpret_cast<void*>(address), extents.data(), &row_bytes,
             box.data(), steps.data(), kAsItLies, kSwizzled128, kFetch256, kZeros),
      "describing a matrix");
  return made;
}

}  // namespace tenon::cuda
