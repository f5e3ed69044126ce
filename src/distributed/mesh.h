#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::distributed {

/// Mesh of ranks: `data` data-parallel groups process parts of each batch, and the `tensor` ranks
/// of a group hold shards of the tensors.
struct Mesh {
  std::int64_t data = 1, tensor = 1;
};

/// Parses `data`, `data:2`, `tensor:2` or `data:2,tensor:2` for that number of ranks; `data`
/// without a number takes the remaining ranks. Throws Error (Usage) for invalid text or a wrong
/// number of ranks.
Mesh parse_mesh(std::string_view text, std::int64_t rank_count);
/// Parses without a number of ranks: the text defines it, and `data` without a number is one.
Mesh parse_mesh(std::string_view text);

}  // namespace tenon::distributed
