#pragma once

#include "program/program.h"
#include "runtime/cuda/driver.h"

#include <array>

namespace tenon::cuda {

/// A tensor as the device's copy unit (TMA) is told of it: CUtensorMap, whose bits are the
/// driver's.
struct alignas(64) EncodedMap {
  std::array<std::uint64_t, 16> words;
};

/// Throws Error (Device) where the driver knows no such maps, or refuses this one.
/// Elements of two or four bytes; a verified map.
EncodedMap encode_map(const Program::TensorMap& map, std::int64_t rows, std::uint32_t element_bytes,
                      Address address);

}  // namespace tenon::cuda
