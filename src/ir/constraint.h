#pragma once

#include "ir/graph.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What an op's `infer` had to take for granted about extents that only a run decides. A graph
/// means something only where all of its constraints hold; they are checked when shapes are bound.
struct Constraint {
  enum class Kind : std::uint8_t {
    Equal,
    /// a <= b
    AtMost,
    /// a is 1 or b: it broadcasts to b
    OneOr,
    /// equal, or one of them is 1
    Broadcast,
  };
  Kind kind = Kind::Equal;
  Dim a, b;
  /// whose rule it is
  std::string op;
  /// "node 'y' (add), operand 'b', axis 0"
  std::string where;
};

enum class Truth : std::uint8_t { Never, Sometimes, Always };
/// Whether it holds for all values of its symbols, for none, or that depends.
Truth truth_of(Constraint::Kind kind, const Dim& a, const Dim& b);

/// "N == M", "N == 1 or N == M".
std::string rule_text(Constraint::Kind kind, const Dim& a, const Dim& b);

/// What the nodes of a graph take for granted, and what was kept of earlier ones; each demand once,
/// without those that are proven. Of bodies only what fused groups hold; extents that a node's own
/// data decides are left out: whoever computes such a node sees its data.
std::vector<Constraint> constraints_of(const Graph& graph);

/// Writes down what the nodes take for granted of the inputs' extents, in the graph and in all of
/// its bodies, so that passes may rewrite the nodes. They stand in the metadata, which passes leave
/// alone and the text form shows: one entry each, `metadata "assume 0" = "equal(N, M) \"add\"
/// \"node 'y' (add), operand 'b', axis 0\""`.
void keep_constraints(Graph& graph);
std::vector<Constraint> kept_constraints(const Graph& graph);
void copy_constraints(const Graph& from, Graph& to);

}  // namespace tenon
