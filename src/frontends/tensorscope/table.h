#pragma once

#include "ir/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::tensorscope {

/// Element type and extents of a tensor, as the table writes them: "128x64x56x56", "int32 4x1" for
/// a vector, "1" for a scalar. A matrix of one column looks like a vector and is read as one.
struct TensorShape {
  /// TensorFlow's word
  std::string element = "float32";
  std::vector<std::int64_t> extents;

  std::int64_t element_count() const;
  std::int64_t byte_count() const;
  bool operator==(const TensorShape&) const = default;
};
std::string to_string(const TensorShape& shape);

/// What TensorFlow's word for an element type stands for: bits in memory, and Tenon's type where
/// it has one.
struct ElementType {
  std::string_view word;
  std::optional<DType> dtype;
  int bits = 0;
};
const ElementType* find_element(std::string_view word);
/// TensorFlow's word for a dtype; empty where it has none.
std::string_view element_word(DType dtype);

struct Device {
  /// "GPU"
  std::string type;
  std::int64_t index = 0;
  auto operator<=>(const Device&) const = default;
};
/// "GPU:0"
std::string to_string(const Device& device);

enum class RowKind : std::uint8_t {
  /// a node of the graph
  Node,
  /// _arg_NODE_PORT_NUMBER: a value that the caller gives
  Feed,
  /// _retval_NODE_PORT_NUMBER: a value that the caller gets
  Fetch,
  /// NODE:Op: the node's kernels as a stream of a GPU saw them
  Stream,
  /// [edge_ID_]NODE:MEMCPYkind: a copy as a stream saw it
  Copy,
  /// NODE:tenon=TEXT: what Tenon says of a node that the table does not tell
  Note,
};
enum class CopyKind : std::uint8_t {
  HostToDevice,
  DeviceToHost,
  DeviceToDevice,
  PeerToPeer,
  HostToHost
};
/// "DtoH"
std::string_view copy_word(CopyKind kind);

/// One line. The name of the row is put together from its parts.
struct Row {
  RowKind kind = RowKind::Node;
  /// its name, or that of the node it is about
  std::string node;
  /// Stream; of a Note its text
  std::string op;
  /// Copy: the number of the edge in TensorFlow's graph
  std::optional<std::int64_t> edge;
  CopyKind copy = CopyKind::DeviceToHost;
  /// Feed, Fetch
  std::int64_t port = 0, number = 0;

  /// false: "(no input)"
  bool tells_inputs = true;
  /// Of data, then names of control edges; "(1)" stands where there is neither.
  std::vector<TensorShape> inputs;
  std::vector<std::string> controls;
  /// "(no output)" where there is none
  std::vector<TensorShape> outputs;
  /// "(output N bytes)", instead
  std::optional<std::int64_t> bytes;
  Device device;

  std::string name() const;
};

/// The nodes of one step, sorted by name.
struct Table {
  std::vector<Row> rows;

  /// The row of a graph node, or of a feed by its whole name; or -1.
  std::int64_t find_node(std::string_view name) const;
  /// The op that a stream says the node is; empty where none does.
  std::string_view stream_op(std::string_view name) const;
  /// What a note says of a node: as `own_node` has it, inputs called by the rows (ROW or ROW:PORT)
  /// that are read; of what reads nothing, its type. Empty where there is none.
  std::string_view note(std::string_view name) const;
  /// To be called when rows were changed.
  void index();

 private:
  std::unordered_map<std::string, std::int64_t> nodes_;
  std::unordered_map<std::string, std::string> stream_ops_, notes_;
};

/// Whether a note is an operator of Tenon's own, rather than a type.
bool is_own(std::string_view note);

/// Reads a whole table. Throws Error with line and column for anything that is not one: malformed
/// rows, rows out of order or twice, names that no row has, control edges in a circle.
Table parse_table(std::string_view text, std::string_view source);
std::string print_row(const Row& row);
std::string print_table(const Table& table);

/// Where a field of a row stands: "line 3, column 14". Fields are counted from the name, 0.
std::string place_of(const Table& table, std::size_t row, std::size_t field);
/// The field of a row's data input, and of an output.
std::size_t input_field(const Row& row, std::size_t input);
std::size_t output_field(const Row& row, std::size_t output);
std::size_t device_field(const Row& row);

}  // namespace tenon::tensorscope
