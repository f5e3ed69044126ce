#pragma once

#include "frontends/megengine/index.h"
#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::megengine {

/// The network in a profile. Throws an Error of kind Unsupported that counts everything that Tenon
/// has no operators for, or one with the JSON path of an operator whose operands do not fit.
Graph import_graph(const Profile& profile, const Index& index);

/// What Tenon itself infers of a profile: an operator that cannot be inferred is passed over, with
/// the document's own word on its results.
struct Inference {
  Graph graph;
  /// by var; invalid where it is no value (workspace, empty outputs)
  std::vector<ValueId> value;
  struct Problem {
    std::size_t opr;
    std::string message;
    bool is_unsupported;
  };
  std::vector<Problem> problems;
  /// Results that the document gives another shape than its own parameters do. What comes behind
  /// goes on with the document's.
  struct Disagreement {
    std::size_t var;
    Extents inferred, stated;
  };
  std::vector<Disagreement> disagreements;
};
Inference infer_profile(const Profile& profile, const Index& index);

/// The shape that most of the document's statements about a var agree on; empty if there are none.
Extents stated_shape(const Profile& profile, const Index& index, std::size_t var);
/// The elements that the document states, of a small var.
const std::vector<double>* stated_value(const VarNode& var);
/// Bytes from the first to the last element by the addresses the var had; nothing if it never had
/// one.
std::optional<std::int64_t> stated_span(const VarNode& var);

}  // namespace tenon::megengine
