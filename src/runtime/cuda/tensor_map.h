#pragma once

#include "program/program.h"
#include "runtime/cuda/driver.h"

#include <array>

namespace tenon::inline runtime::cuda {

/// An encoded TMA tensor map (CUtensorMap); the driver defines the bits.
struct alignas(64) EncodedMap {
  std::array<std::uint64_t, 16> words;
};

/// Encodes a verified map. Throws Error (Device) if the driver lacks tensor maps or refuses this
/// one.
EncodedMap encode_map(const Program::TensorMap& map, std::int64_t rows, std::uint32_t element_bytes,
                      Address address);

}  // namespace tenon::inline runtime::cuda
