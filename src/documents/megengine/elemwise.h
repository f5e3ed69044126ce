#pragma once

#include "tenon/builder.h"

#include <string_view>
#include <vector>

namespace tenon::documents::megengine {

/// A mode of MegEngine's Elemwise operator.
struct ElemwiseMode {
  std::string_view name;
  std::size_t operand_count = 1;
  /// The equivalent Tenon operator without attributes; empty if several are needed.
  std::string_view op;
  Var (*build)(Builder& builder, const std::vector<Var>& operands) = nullptr;
};

/// Returns null for a mode without an equivalent in Tenon.
const ElemwiseMode* find_elemwise_mode(std::string_view name);
/// Returns the mode that equals this operator without attributes, or null.
const ElemwiseMode* elemwise_mode_of(std::string_view op);

}  // namespace tenon::documents::megengine
