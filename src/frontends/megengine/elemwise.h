#pragma once

#include "tenon/builder.h"

#include <string_view>
#include <vector>

namespace tenon::megengine {

/// A mode of MegEngine's Elemwise operator.
struct ElemwiseMode {
  std::string_view name;
  std::size_t operand_count = 1;
  /// The Tenon operator that is the mode, without attributes; empty where it takes several.
  std::string_view op;
  Var (*build)(Builder& builder, const std::vector<Var>& operands) = nullptr;
};

/// Null for a mode that no operators of Tenon make up.
const ElemwiseMode* find_elemwise_mode(std::string_view name);
/// The mode that is this operator without attributes, or null.
const ElemwiseMode* elemwise_mode_of(std::string_view op);

}  // namespace tenon::megengine
