#pragma once

#include "ops/definition/operand_types.h"

#include <string_view>

namespace tenon::inline ops {

/// Set of element types, as an op's requirement: `floats | integers`.
struct Elements {
  unsigned kinds = 0;
  friend constexpr Elements operator|(Elements a, Elements b) { return {a.kinds | b.kinds}; }
};
inline constexpr Elements floats{1}, integers{2}, bools{4}, complexes{8}, texts{16};
inline constexpr Elements reals = floats | integers;
inline constexpr Elements numbers = reals | complexes;
inline constexpr Elements everything = numbers | bools | texts;

/// Returns the operand's type. Throws Error if its dtype is not among `elements`.
const TensorType& require_elements(const OperandTypes& in, std::string_view operand,
                                   Elements elements);

}  // namespace tenon::inline ops
