#pragma once

#include "memory/arena.h"

#include <string>
#include <string_view>

namespace tenon::memory {

/// The table of the public benchmarks for placement: a header that names the columns id, lower,
/// upper and size, in any order; then a line for each buffer, which is needed at the moments
/// [lower, upper). A column `offset` that is filled in says where a buffer has to lie.
struct ArenaTable {
  std::vector<std::string> ids;
  std::vector<ArenaBuffer> buffers;
};
/// Throws Error with the line where the text is no such table.
ArenaTable parse_arena_table(std::string_view text, std::string_view source);
/// The table with a column `offset`.
std::string print_arena_table(const ArenaTable& table, const std::vector<std::uint64_t>& offsets);

}  // namespace tenon::memory
