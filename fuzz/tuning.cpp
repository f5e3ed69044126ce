// Fuzz target: exported tuning results. Any text parses or ends in an Error; parsed results
// round-trip.
#include "base/error.h"
#include "tune/cache.h"

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string written;
  try {
    written = tenon::tune::to_json(tenon::tune::tuned_kernels_from_json(text, "fuzz"));
  } catch (const tenon::Error&) {
    return 0;
  }
  try {
    if (tenon::tune::to_json(tenon::tune::tuned_kernels_from_json(written, "fuzz")) != written)
      std::abort();
  } catch (const tenon::Error&) {
    std::abort();
  }
  return 0;
}
