#pragma once

#include "base/extent_relation.h"
#include "ir/graph.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline ir {

/// Assumption that an op's `infer` made about symbolic extents. A graph is valid only for shapes
/// that satisfy all of its constraints; they are checked when shapes are bound.
struct Constraint {
  ExtentRelation kind = ExtentRelation::Equal;
  Dim a, b;
  /// Op whose rule this is.
  std::string op;
  /// Location, e.g. "node 'y' (add), operand 'b', axis 0".
  std::string where;
};

enum class Truth : std::uint8_t { Never, Sometimes, Always };
/// Returns whether the constraint holds for all values of its symbols, for some, or for none.
Truth truth_of(ExtentRelation kind, const Dim& a, const Dim& b);

/// Returns e.g. "N == M", "N == 1 or N == M".
std::string rule_text(ExtentRelation kind, const Dim& a, const Dim& b);

/// Returns the constraints of a graph's nodes and the stored constraints of earlier nodes,
/// deduplicated, without proven ones. Includes the bodies of fused groups but no other bodies.
/// Leaves out extents that a node's own data determines: the node checks them when it runs.
std::vector<Constraint> constraints_of(const Graph& graph);

/// Stores the constraints of the nodes of the graph and its bodies on input extents, so that passes
/// may rewrite the nodes. They are stored in the metadata, which passes do not change and the text
/// form shows, one entry each: `metadata "assume 0" = "equal(N, M) \"add\" \"node 'y' (add),
/// operand 'b', axis 0\""`.
void keep_constraints(Graph& graph);
std::vector<Constraint> kept_constraints(const Graph& graph);
void copy_constraints(const Graph& from, Graph& to);

}  // namespace tenon::inline ir
