#pragma once

#include "ir/graph.h"
#include "ir/state_ports.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// A value that one run leaves to the next: a parameter, a moment, a counter. What it is now comes
/// in as an input and what it is next goes out as an output, so that a graph stays a function;
/// passes keep both.
struct State {
  std::string name;
  /// positions among the graph's
  std::size_t input = 0, output = 0;
  Constant initial;
  /// Where every rank holds a piece: of which tensor, and its shape, which `initial` has. Piece k
  /// of n has the elements from k * c on, in row-major order, where c is the state's extent; zeros
  /// follow the last. With an axis, rank k of a tensor group has part k of as many along it.
  struct Split {
    std::string whole;
    Shape shape;
    std::optional<std::size_t> axis = {};
    /// no rank holds it otherwise
    bool is_parameter = false;
  };
  std::optional<Split> split = {};
};

struct StatefulGraph {
  Graph graph;
  std::vector<State> states;

  /// Positions of the inputs, and outputs, that are no state's.
  std::vector<std::size_t> data_inputs() const;
  std::vector<std::size_t> data_outputs() const;
  /// Where states come in and go out.
  std::vector<StatePorts> ports() const;
};

/// The graph's text, and a comment for each state that says where it comes in and goes out.
std::string print(const StatefulGraph& step);

}  // namespace tenon
