#pragma once

#include "ops/expr.h"
#include "passes/shard/sharding.h"

#include <span>
#include <string>
#include <variant>

namespace tenon {

/// What ranks hold between them that each compute `part`, where `whole` is wanted: the same op's
/// expression on operands that are held as `operands` say, by position. Or the reason why their
/// results do not make up the whole. Follows both expressions side by side, so that nothing is
/// known here of single operators.
std::variant<Sharding, std::string> sharding_of(const Expr& whole, const Expr& part,
                                                std::span<const Sharding> operands,
                                                std::int64_t ranks);

}  // namespace tenon
