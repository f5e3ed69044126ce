// Fuzz target: .npy arrays. Any bytes parse or end in an Error; parsed arrays round-trip.
#include "frontends/numpy/npy.h"

#include "base/error.h"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const tenon::Tensor array =
        tenon::frontends::numpy::read_npy(std::as_bytes(std::span(data, size)));
    const std::string written = tenon::frontends::numpy::write_npy(array);
    const tenon::Tensor again =
        tenon::frontends::numpy::read_npy(std::as_bytes(std::span(written)));
    if (again.shape() != array.shape()) std::abort();
  } catch (const tenon::Error&) {
    return 0;
  }
  return 0;
}
