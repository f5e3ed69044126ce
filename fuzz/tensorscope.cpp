// Fuzz target: TensorScope node tables. Any bytes parse or end in an Error.
#include "document.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenon::fuzz_document("tensorscope", data, size);
  return 0;
}
