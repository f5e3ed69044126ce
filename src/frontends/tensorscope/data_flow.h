#pragma once

#include "frontends/tensorscope/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::tensorscope {

/// Why a node is said to read a tensor: a table tells only the shapes of what is read.
enum class Evidence : std::uint8_t {
  /// nothing in the table has that shape at that place
  None,
  /// TensorFlow's names say so
  Name,
  /// control edges that a folded shape kept say so
  Control,
  /// it follows from what the gradients' operators read
  Gradient,
  /// nothing else has the shape
  OnlyOne,
  /// several have the shape; one was preferred
  Chosen,
};

struct Source {
  /// of a node or feed; -1: nothing found
  std::int64_t row = -1;
  std::size_t port = 0;
  Evidence evidence = Evidence::None;
  /// Chosen: among how many
  std::size_t candidates = 0;
};

/// Stands for TensorFlow's operator of a node that a note says is Tenon's own.
inline constexpr std::string_view kOwnOp = "tenon";

/// The data flow of a table, which it does not hold but mostly determines.
struct DataFlow {
  /// TensorFlow's operator of each node's row; "" if not known
  std::vector<std::string> ops;
  /// by what a scope usually holds
  std::vector<bool> is_op_assumed;
  /// of each data input of each row
  std::vector<std::vector<Source>> sources;
  /// rows of nodes and feeds: everything is made before it is read
  std::vector<std::size_t> order;
};

/// Finds the data flow from names, shapes, control edges and the signatures of TensorFlow's
/// gradients: one acyclic flow, the same each time. Never fails: what it cannot tell it says.
DataFlow reconstruct(const Table& table);

/// Whether a row computes: neither a constant nor a variable, nor the reading of one.
bool is_compute(const Table& table, const DataFlow& step, std::size_t row);

}  // namespace tenon::tensorscope
