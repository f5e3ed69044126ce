#pragma once

#include "frontends/tensorscope/data_flow.h"
#include "frontends/tensorscope/names.h"
#include "frontends/tensorscope/tf_ops.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::tensorscope {

/// A tensor: an output of a row.
struct TensorId {
  std::int64_t row = -1;
  std::size_t port = 0;
  bool is_valid() const { return row >= 0; }
  bool operator==(const TensorId&) const = default;
};

/// What a node of a gradient reads, in terms of the node it is the gradient of.
enum class Meaning : std::uint8_t { Input0, Input1, Output, Gradient, Shape };
std::vector<Meaning> gradient_signature(std::string_view op, std::string_view forward_op,
                                        std::string_view part);

/// The reconstruction while it is made; the rules fill in `step`.
class Wiring {
 public:
  explicit Wiring(const Table& given);

  const Table& table;
  DataFlow step;

  const Row& row(std::int64_t at) const { return table.rows[static_cast<std::size_t>(at)]; }
  const std::string& op(std::int64_t at) const { return step.ops[static_cast<std::size_t>(at)]; }
  Source& source(std::int64_t at, std::size_t input) {
    return step.sources[static_cast<std::size_t>(at)][input];
  }
  OpClass op_class(std::int64_t at) const;
  bool is_layout_transpose(std::int64_t at) const {
    return transposes_[static_cast<std::size_t>(at)];
  }
  const TensorShape& shape(TensorId id) const { return row(id.row).outputs[id.port]; }

  /// Connects an input that nothing is connected to; false where there is no such input or output.
  bool connect(std::int64_t reader, std::size_t input, TensorId from, Evidence evidence,
               std::size_t candidates = 0);
  bool is_connected(std::int64_t reader, std::size_t input) const;
  /// The tensor behind the layout optimiser's transposes.
  TensorId root(TensorId id) const;
  /// The tensor itself or a transpose of it, whichever has the shape.
  TensorId version(TensorId id, const TensorShape& wanted) const;

  /// The row of the node that a gradient's row belongs to, or -1.
  std::int64_t forward_of(std::int64_t at) const;
  /// What a transpose in front of a gradient's input hands on.
  std::optional<Meaning> meaning_of(std::int64_t reader, std::size_t input) const;
  /// Whether a row belongs to the part that gradients are taken of.
  bool is_forward(std::int64_t at) const;

  /// Whether what a row gives is where another one runs: on the same device, or copied.
  bool is_copied(std::int64_t from, std::int64_t reader) const;

  // The rules, in the order they apply.
  void connect_by_name();
  void connect_by_gradient_inputs();
  void connect_by_controls();
  void connect_gradients();
  /// Puts rows in order, those that `belongs` accepts, connecting what is left by shape.
  void grow(const std::vector<char>& belongs);

 private:
  void connect_noted(std::int64_t at);

  std::vector<char> transposes_;
  std::unordered_map<std::int64_t, std::vector<std::int64_t>> versions_;  // port 0 only
  std::vector<char> is_placed_;
  std::unordered_set<std::string> copied_;  // names of rows; empty where the table has no copies
};

/// The operator of each node, from streams, names and gradients.
void find_ops(const Table& table, DataFlow& step);

}  // namespace tenon::tensorscope
