#pragma once

#include <optional>
#include <vector>

#include "codegen/nest_names.h"

namespace tenon::codegen::cpu {

/// Where the loops `around` a jammed one are too few items of work to share out, cuts its positions
/// into blocks: `jam` is left with those of one, and the loop over the blocks comes back. Blocks are
/// whole tiles, so that as many positions go together as before.
std::optional<Statement> split_rows(LoopNest& nest, Statement& jam, const std::vector<Statement>& around);

/// Blocks of rows, to stand outermost, for short sums whose results no cache holds: each block then writes
/// whole rows, where going down the columns would touch a page for each row. Nothing for other sums.
std::optional<Statement> rows_outermost(LoopNest& nest, Statement& jam, std::int64_t result_bytes, std::int64_t cache_bytes);

}  // namespace tenon::codegen::cpu
