#pragma once

#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::passes {

/// A value that one run passes to the next: a parameter, optimizer state, a counter. Its current
/// value is an input and its next value an output, so that a graph stays a pure function; passes
/// keep both.
struct State {
  std::string name;
  /// indices among the graph's inputs and outputs
  std::size_t input = 0, output = 0;
  Constant initial;
  /// For a state of which every rank holds a piece: the tensor's name, and its shape, which
  /// `initial` has. Piece k of n has the elements from k * c on, in row-major order, where c is the
  /// state's extent, padded with zeros. With an axis, rank k of a tensor group holds shard k along
  /// that axis.
  struct Split {
    std::string whole;
    Shape shape;
    std::optional<std::size_t> axis = {};
    /// no rank holds the whole tensor
    bool is_parameter = false;
  };
  std::optional<Split> split = {};
};

struct StatefulGraph {
  Graph graph;
  std::vector<State> states;

  /// Indices of the inputs, and outputs, that do not belong to states.
  std::vector<std::size_t> data_inputs() const;
  std::vector<std::size_t> data_outputs() const;
};

/// Declares the states in the graph (`Graph::states`), without initial values: its program takes
/// them from the caller before the first run and passes them on from run to run. With
/// `may_overwrite`, the current values need not survive a run.
void declare_states(StatefulGraph& step, bool may_overwrite);

/// Returns the graph's text with a comment for each state about its input and output.
std::string print(const StatefulGraph& step);

}  // namespace tenon::passes
