// Fuzz target: ONNX models. Any bytes import or end in an Error.
#include "base/error.h"
#include "frontends/onnx/import.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tenon::frontends::onnx::import_onnx(std::as_bytes(std::span(data, size)));
  } catch (const tenon::Error&) {
    return 0;
  }
  return 0;
}
