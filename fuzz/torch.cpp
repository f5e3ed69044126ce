// Fuzz target: exported programs of PyTorch. Any bytes import or end in an Error.
#include "base/error.h"
#include "frontends/torch/import.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tenon::frontends::torch::import_torch(std::as_bytes(std::span(data, size)), nullptr, "fuzz");
  } catch (const tenon::Error&) {
    return 0;
  }
  return 0;
}
