#pragma once

#include "reference/block_program.h"

namespace tenon::reference {

/// Elementwise steps over a block. Each writes `out` in the result's lane and returns true if it
/// wrote a single element that represents the whole block.
void store_literal(const ExprNode& node, LaneType lane, std::byte* out);
bool run_unary(const ExprNode& node, LaneType lane, BlockProgram::Block x, std::int64_t count,
               std::byte* out);
bool run_binary(const ExprNode& node, LaneType lane, BlockProgram::Block a, BlockProgram::Block b,
                std::int64_t count, std::byte* out);
bool run_select(LaneType lane, BlockProgram::Block condition, BlockProgram::Block a,
                BlockProgram::Block b, std::int64_t count, std::byte* out);
bool run_cast(DType dtype, LaneType from, BlockProgram::Block x, std::int64_t count,
              std::byte* out);

/// Rounds an f32 to a narrower floating-point dtype; saturates for f8.
float round_to(DType dtype, float value);

}  // namespace tenon::reference
