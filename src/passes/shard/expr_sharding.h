#pragma once

#include "expr/expr.h"
#include "passes/shard/sharding.h"

#include <span>
#include <string>
#include <variant>

namespace tenon::passes {

/// Returns the sharding of the result if each rank computes `part`, the op's expression on operands
/// with the shardings `operands`, in place of `whole`; or the reason why the ranks' results do not
/// make up the whole. Compares both expressions structurally, without knowledge of single
/// operators.
std::variant<Sharding, std::string> sharding_of(const Expr& whole, const Expr& part,
                                                std::span<const Sharding> operands,
                                                std::int64_t ranks);

}  // namespace tenon::passes
