#pragma once

#include "ir/graph.h"

namespace tenon::recognition {

/// What is known of a mask [rows, columns] of truth values behind axes of extent 1.
struct MaskFacts {
  /// Row i has the columns up to i + offset and no others.
  std::optional<Dim> causal_offset;
  /// Every row has a column.
  bool has_full_rows = false;
};

/// Looks at constants, lower triangles (`trilu`) and slices of these. With `is_inverted`, false
/// stands for what a row has.
MaskFacts facts_of_mask(const Graph& graph, ValueId mask, bool is_inverted);

}  // namespace tenon::recognition
