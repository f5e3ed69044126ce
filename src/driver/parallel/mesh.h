#pragma once

#include <cstdint>
#include <string_view>

namespace tenon {

/// How ranks share the work: `data` groups take parts of each batch, and the `tensor` ranks of a
/// group parts of the tensors.
struct Mesh {
  std::int64_t data = 1, tensor = 1;
};

/// Reads `data`, `data:2`, `tensor:2` or `data:2,tensor:2`, for so many ranks; `data` without a
/// number is what is left. Throws Error (Usage) for other words, and where the ranks are more or
/// fewer.
Mesh parse_mesh(std::string_view text, std::int64_t rank_count);
/// The same for ranks that there are not: as many as the text says, `data` without a number one.
Mesh parse_mesh(std::string_view text);

}  // namespace tenon
