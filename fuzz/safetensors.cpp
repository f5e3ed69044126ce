// Fuzz target: .safetensors files. Any bytes parse or end in an Error.
#include "frontends/safetensors/safetensors.h"

#include "base/error.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tenon::frontends::read_safetensors(std::as_bytes(std::span(data, size)));
  } catch (const tenon::Error&) {
    return 0;
  }
  return 0;
}
