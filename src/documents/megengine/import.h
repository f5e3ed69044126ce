#pragma once

#include "documents/megengine/index.h"
#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::documents::megengine {

/// Imports the network of a profile. Throws Error: of kind Unsupported, with counts of all
/// operators without an equivalent, or with the JSON path of an operator with inconsistent
/// operands.
Graph import_graph(const MegEngineProfile& profile, const Index& index);

/// Tenon's own inference over a profile. An operator that cannot be inferred is skipped, with the
/// document's statements about its results.
struct Inference {
  Graph graph;
  /// by var; invalid for vars that are not values (workspace, empty outputs)
  std::vector<ValueId> value;
  struct Problem {
    std::size_t opr;
    std::string message;
    bool is_unsupported;
  };
  std::vector<Problem> problems;
  /// Results whose stated shapes contradict the operator's parameters. Later operators use the
  /// stated shapes.
  struct Disagreement {
    std::size_t var;
    Extents inferred, stated;
  };
  std::vector<Disagreement> disagreements;
};
Inference infer_profile(const MegEngineProfile& profile, const Index& index);

/// Returns the shape in most statements about a var; empty without a statement.
Extents stated_shape(const MegEngineProfile& profile, const Index& index, std::size_t var);
/// Returns the stated elements of a small var.
const std::vector<double>* stated_value(const VarNode& var);
/// Returns the bytes from the first to the last element by the var's addresses; nullopt if it never
/// had one.
std::optional<std::int64_t> stated_span(const VarNode& var);

}  // namespace tenon::documents::megengine
