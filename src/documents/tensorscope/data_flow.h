#pragma once

#include "documents/tensorscope/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::tensorscope {

/// Evidence for an edge of the data flow: a table only states the shapes of operands.
enum class Evidence : std::uint8_t {
  /// no value of that shape is available
  None,
  /// TensorFlow's naming rules
  Name,
  /// control edges of a folded shape
  Control,
  /// operands of gradient operators
  Gradient,
  /// the only value of that shape
  OnlyOne,
  /// preferred among several values of that shape
  Chosen,
};

struct DataSource {
  /// of a node or feed; -1: not found
  std::int64_t row = -1;
  std::size_t port = 0;
  Evidence evidence = Evidence::None;
  /// Chosen: number of candidates
  std::size_t candidates = 0;
};

/// Stands for TensorFlow's operator of a node that a note declares to be native.
inline constexpr std::string_view kOwnOp = "tenon";

/// Data flow of a table, reconstructed: the table omits the edges but mostly determines them.
struct DataFlow {
  /// TensorFlow's operator of each node's row; "" if unknown
  std::vector<std::string> ops;
  /// assumed from the usual operators of a scope
  std::vector<bool> is_op_assumed;
  /// of each data input of each row
  std::vector<std::vector<DataSource>> sources;
  /// rows of nodes and feeds in topological order
  std::vector<std::size_t> order;
};

/// Reconstructs an acyclic data flow from names, shapes, control edges and the signatures of
/// TensorFlow's gradients, deterministically. Never fails: unresolved inputs are marked.
DataFlow reconstruct(const TensorScopeTable& table);

/// Returns whether a row computes, in contrast to constants, variables and reads of variables.
bool is_compute(const TensorScopeTable& table, const DataFlow& step, std::size_t row);

}  // namespace tenon::documents::tensorscope
