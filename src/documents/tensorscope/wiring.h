#pragma once

#include "documents/tensorscope/data_flow.h"
#include "documents/tensorscope/names.h"
#include "documents/tensorscope/tf_ops.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::documents::tensorscope {

/// A tensor: an output of a row.
struct TensorId {
  std::int64_t row = -1;
  std::size_t port = 0;
  bool is_valid() const { return row >= 0; }
  bool operator==(const TensorId&) const = default;
};

/// Operands of a gradient node in terms of its forward node.
enum class GradientOperand : std::uint8_t { Input0, Input1, Output, Gradient, Shape };
std::vector<GradientOperand> gradient_signature(std::string_view op, std::string_view forward_op,
                                                std::string_view part);

/// Data flow under reconstruction; the rules fill in `step`.
class Wiring {
 public:
  explicit Wiring(const TensorScopeTable& given);

  const TensorScopeTable& table;
  DataFlow step;

  const Row& row(std::int64_t at) const { return table.rows[static_cast<std::size_t>(at)]; }
  const std::string& op(std::int64_t at) const { return step.ops[static_cast<std::size_t>(at)]; }
  DataSource& source(std::int64_t at, std::size_t input) {
    return step.sources[static_cast<std::size_t>(at)][input];
  }
  OpClass op_class(std::int64_t at) const;
  bool is_layout_transpose(std::int64_t at) const {
    return transposes_[static_cast<std::size_t>(at)];
  }
  const TensorShape& shape(TensorId id) const { return row(id.row).outputs[id.port]; }

  /// Connects an open input; false for a missing input or output.
  bool connect(std::int64_t reader, std::size_t input, TensorId from, Evidence evidence,
               std::size_t candidates = 0);
  bool is_connected(std::int64_t reader, std::size_t input) const;
  /// Returns the source of a chain of layout transposes.
  TensorId root(TensorId id) const;
  /// Returns the tensor itself or a transpose of it with the wanted shape.
  TensorId version(TensorId id, const TensorShape& wanted) const;

  /// Returns the row of the forward node of a gradient's row, or -1.
  std::int64_t forward_of(std::int64_t at) const;
  /// Returns the role of a transposed operand of a gradient.
  std::optional<GradientOperand> gradient_operand_of(std::int64_t reader, std::size_t input) const;
  /// Returns whether a row belongs to the differentiated part.
  bool is_forward(std::int64_t at) const;

  /// Returns whether a row's results are available to the reader: on its device, or by a copy.
  bool is_copied(std::int64_t from, std::int64_t reader) const;

  // The rules, in order of application.
  void connect_by_name();
  void connect_by_gradient_inputs();
  void connect_by_controls();
  void connect_gradients();
  /// Orders the rows that `belongs` accepts, and connects open inputs by shape.
  void grow(const std::vector<char>& belongs);

 private:
  void connect_noted(std::int64_t at);

  std::vector<char> transposes_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> versions_;  // port 0 only
  std::vector<char> is_placed_;
  std::unordered_set<std::string> copied_;  // names of rows; empty for a table without copies
};

/// Finds the operator of each node from streams, names and gradients.
void find_ops(const TensorScopeTable& table, DataFlow& step);

}  // namespace tenon::documents::tensorscope
