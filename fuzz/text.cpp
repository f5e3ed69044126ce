// Fuzz target: text form of graphs. Any text parses or ends in an Error; a parsed graph verifies
// and round-trips.
#include "ir/text.h"

#include "base/error.h"
#include "ir/verify.h"
#include "ops/definition/registry.h"

#include <cstdint>
#include <cstdlib>

namespace {

std::string printed_again(const std::string& text) {
  try {
    return tenon::print(tenon::parse_graph(text, tenon::all_ops()));
  } catch (const tenon::Error&) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tenon::Graph graph = tenon::parse_graph(text, tenon::all_ops());
    if (!tenon::problems_of(graph).empty()) std::abort();
    const std::string printed = tenon::print(graph);
    if (printed_again(printed) != printed) std::abort();
  } catch (const tenon::Error&) {
    return 0;
  }
  return 0;
}
