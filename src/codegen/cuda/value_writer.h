#pragma once

#include "codegen/cuda/requantize.h"
#include "codegen/nest_names.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::codegen::cuda {

/// Indented source lines.
class Lines {
 public:
  void add(const std::string& line) { text_.append(2 * depth_, ' ').append(line).append("\n"); }
  void open(const std::string& line) {
    add(line + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    add("}");
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t depth_ = 0;
};

/// Name of a loop variable: "i_8", because i8 is a type.
inline std::string loop_name(std::size_t loop) { return "i_" + std::to_string(loop); }

/// Type in which values are computed, and type in which a buffer stores them.
std::string computed_type(DType dtype);
std::string stored_type(DType dtype);
/// Converts between the stored and the computed form of a value.
std::string from_stored(DType dtype, const std::string& stored);
std::string to_stored(DType dtype, const std::string& value);
/// Combines a value into an accumulator.
std::string combined(Reduction reduction, DType dtype, const std::string& total,
                     const std::string& next);
/// Literal of an accumulator's initial value.
std::string literal_text(DType dtype, double real, std::int64_t integer);

/// Writes the expressions of one statement, each once (common-subexpression elimination). Inside a
/// loop over lanes, `v` is the lane.
class ValueWriter {
 public:
  /// A vector load for all lanes at once.
  struct PackedLoad {
    /// An empty guard means that the load is in bounds.
    std::string pack, guard;
    /// Index of the lane's element in the vector.
    std::string index = "v";
  };
  struct ElementOffset {
    /// An empty `inside` means that the access is in bounds.
    std::string offset, inside;
  };

  ValueWriter(const LoopNest& nest, Lines& lines);

  void begin_statement() { known_.clear(); }
  /// `have_locals`: each lane has its own locals.
  void set_lanes(std::optional<std::size_t> loop, unsigned lanes, bool have_locals) {
    lane_loop_ = loop;
    lanes_ = lanes;
    lanes_have_locals_ = have_locals;
  }
  /// Outside the loops over lanes, values are those of the first lane.
  void set_in_lanes(bool is_in_lanes) { is_in_lanes_ = is_in_lanes; }
  void set_packed(std::unordered_map<const ScalarNode*, PackedLoad> packed) {
    packed_ = std::move(packed);
  }
  /// Values are stored in 16 bits: precision beyond that is not needed.
  void set_narrow(bool is_narrow) { is_narrow_ = is_narrow; }
  void name_loop(std::size_t loop, std::string name) { loops_[loop] = std::move(name); }

  std::string value(const Scalar& scalar);
  std::string extent(const Dim& dim) const;
  /// Returns a statement that reports a failed data check to the host.
  static std::string report(Check check);
  ElementOffset place(const std::vector<Scalar>& indices, const Dims& view, bool checks);
  std::string local(std::size_t id) const;
  std::string place_of(std::size_t id) const;
  /// True if the expression, with the lane loop at 0, is provably a multiple of the lane count.
  bool is_whole_pack(const Scalar& scalar) const;
  bool is_surely_inside(const Scalar& index, const Dim& extent) const;
  const std::map<std::size_t, std::int64_t>& loop_extents() const { return loop_extents_; }

 private:
  std::string new_value(const Scalar& scalar);
  std::string load(const Scalar& scalar);
  std::string type_of(const Scalar& scalar) const;
  std::string index_binary(const Scalar& scalar);
  std::string rounded_byte(const RequantizedByte& byte, DType dtype);
  std::string named(const std::string& type, const std::string& text);

  const LoopNest& nest_;
  Lines& lines_;
  std::unordered_map<const ScalarNode*, std::string> known_;
  std::unordered_map<const ScalarNode*, PackedLoad> packed_;
  std::map<std::size_t, std::string> loops_;
  std::map<std::size_t, std::int64_t> loop_extents_;
  std::map<std::size_t, Dim> loop_dims_;
  std::optional<std::size_t> lane_loop_;
  unsigned lanes_ = 1;
  bool is_in_lanes_ = false, lanes_have_locals_ = false, is_narrow_ = false;
  std::size_t count_ = 0;
};

}  // namespace tenon::codegen::cuda
