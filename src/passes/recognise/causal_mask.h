#pragma once

#include "ir/graph.h"

namespace tenon::passes::recognition {

/// Properties of a boolean mask [rows, columns] with any leading axes of extent 1.
struct MaskFacts {
  /// Row i selects exactly the columns up to i + offset.
  std::optional<Dim> causal_offset;
  /// Every row selects at least one column.
  bool has_full_rows = false;
};

/// Analyses constants, lower triangles (`trilu`) and slices of these. With `is_inverted`, false
/// marks the selected elements.
MaskFacts facts_of_mask(const Graph& graph, ValueId mask, bool is_inverted);

}  // namespace tenon::passes::recognition
