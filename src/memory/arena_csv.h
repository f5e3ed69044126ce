#pragma once

#include "memory/arena.h"

#include <string>
#include <string_view>

namespace tenon::memory {

/// The CSV format of the public placement benchmarks: a header with the columns id, lower, upper
/// and size in any order, then one line per buffer, live during [lower, upper). A filled `offset`
/// column fixes the buffer's offset.
struct ArenaTable {
  std::vector<std::string> ids;
  std::vector<ArenaBuffer> buffers;
};
/// Throws Error with the line of a syntax error.
ArenaTable parse_arena_table(std::string_view text, std::string_view source);
/// Prints the table with an `offset` column.
std::string print_arena_table(const ArenaTable& table, const std::vector<std::uint64_t>& offsets);

}  // namespace tenon::memory
