#pragma once

#include "ir/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::documents::tensorscope {

/// Element type and extents of a tensor in the table's form: "128x64x56x56", "int32 4x1" for a
/// vector, "1" for a scalar. A matrix of one column looks like a vector and is read as one.
struct TensorShape {
  /// TensorFlow's name
  std::string element = "float32";
  std::vector<std::int64_t> extents;

  std::int64_t element_count() const;
  std::int64_t byte_count() const;
  bool operator==(const TensorShape&) const = default;
};
std::string to_string(const TensorShape& shape);

/// A TensorFlow element type: bits in memory, and the Tenon type if it exists.
struct ElementType {
  std::string_view word;
  std::optional<DType> dtype;
  int bits = 0;
};
const ElementType* find_element(std::string_view word);
/// TensorFlow's name of a dtype; empty for types that it lacks.
std::string_view element_word(DType dtype);

struct DeviceName {
  /// "GPU"
  std::string type;
  std::int64_t index = 0;
  auto operator<=>(const DeviceName&) const = default;
};
/// "GPU:0"
std::string to_string(const DeviceName& device);

enum class RowKind : std::uint8_t {
  /// a node of the graph
  Node,
  /// _arg_NODE_PORT_NUMBER: a value from the caller
  Feed,
  /// _retval_NODE_PORT_NUMBER: a value for the caller
  Fetch,
  /// NODE:Op: the node's kernels as recorded on a GPU stream
  Stream,
  /// [edge_ID_]NODE:MEMCPYkind: a copy as recorded on a stream
  Copy,
  /// NODE:tenon=TEXT: Tenon's information about a node that the table lacks
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

/// One line. The row's name is composed of its parts.
struct Row {
  RowKind kind = RowKind::Node;
  /// its name, or that of the node it refers to
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
  /// Data inputs, then names of control edges; "(1)" if both are empty.
  std::vector<TensorShape> inputs;
  std::vector<std::string> controls;
  /// "(no output)" if empty
  std::vector<TensorShape> outputs;
  /// "(output N bytes)", instead
  std::optional<std::int64_t> bytes;
  DeviceName device;

  std::string name() const;
};

/// The nodes of one step, sorted by name.
struct TensorScopeTable {
  std::vector<Row> rows;

  /// Returns the row of a graph node, or of a feed by its full name; or -1.
  std::int64_t find_node(std::string_view name) const;
  /// Returns the op of a node's stream rows; empty without one.
  std::string_view stream_op(std::string_view name) const;
  /// Returns the note of a node: a record of `native_node` whose inputs are named by rows (ROW or
  /// ROW:PORT); for a node without inputs, its type. Empty without a note.
  std::string_view note(std::string_view name) const;
  /// Must be called after rows were changed.
  void index();

 private:
  std::unordered_map<std::string, std::int64_t> nodes_;
  std::unordered_map<std::string, std::string> stream_ops_, notes_;
};

/// Returns whether a note is a native operator, in contrast to a type.
bool is_own(std::string_view note);

/// Parses a whole table. Throws Error with line and column for malformed rows, unsorted or
/// duplicate rows, dangling names, and cycles of control edges.
TensorScopeTable parse_table(std::string_view text, std::string_view source);
std::string print_row(const Row& row);
std::string print_table(const TensorScopeTable& table);

/// Position of a row's field: "line 3, column 14". Fields are counted from the name, 0.
std::string place_of(const TensorScopeTable& table, std::size_t row, std::size_t field);
/// The field of a row's data input, and of an output.
std::size_t input_field(const Row& row, std::size_t input);
std::size_t output_field(const Row& row, std::size_t output);
std::size_t device_field(const Row& row);

}  // namespace tenon::documents::tensorscope
