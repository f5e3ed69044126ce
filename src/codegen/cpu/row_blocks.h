#pragma once

#include <optional>
#include <vector>

#include "codegen/nest_names.h"

namespace tenon::codegen::cpu {

/// Where the loops `around` a jammed one are too few items of work to share out, cuts its positions
/// into blocks: `jam` is left with those of one, and the loop over the blocks comes back. Blocks are
/// whole tiles, so that as many positions go together as before.
std::optional<Statement> split_rows(LoopNest& nest, Statement& jam, const std::vector<Statement>& around);

}  // namespace tenon::codegen::cpu
