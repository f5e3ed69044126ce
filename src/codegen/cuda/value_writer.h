#pragma once

#include "codegen/cuda/rounded_byte.h"
#include "codegen/nest_names.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::codegen::cuda {

/// Lines of source, indented.
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

/// What a kernel calls a loop's position: "i_8", as i8 is a type.
inline std::string loop_name(std::size_t loop) { return "i_" + std::to_string(loop); }

/// The type that numbers are computed in, and that in which a buffer holds them.
std::string computed_type(DType dtype);
std::string stored_type(DType dtype);
/// A number as it is computed with, from what a buffer holds, and back.
std::string from_stored(DType dtype, const std::string& stored);
std::string to_stored(DType dtype, const std::string& value);
/// Combines a number into what a fold holds.
std::string combined(Reduction reduction, DType dtype, const std::string& total,
                     const std::string& next);
/// The literal that a fold begins with.
std::string literal_text(DType dtype, double real, std::int64_t integer);

/// Writes the numbers of one statement, each once. Inside a pass over lanes, `v` is the lane.
class ValueWriter {
 public:
  /// A load that was made for all lanes at once.
  struct PackedLoad {
    /// no guard: it lies inside
    std::string pack, guard;
    /// in the pack
    std::string index = "v";
  };
  struct Place {
    /// empty: surely inside
    std::string offset, inside;
  };

  ValueWriter(const LoopNest& nest, Lines& lines);

  void begin_statement() { known_.clear(); }
  /// `have_locals`: each lane has locals of its own.
  void set_lanes(std::optional<std::size_t> loop, unsigned lanes, bool have_locals) {
    lane_loop_ = loop;
    lanes_ = lanes;
    lanes_have_locals_ = have_locals;
  }
  /// Between the passes over lanes numbers are those of the first.
  void set_in_lanes(bool is_in_lanes) { is_in_lanes_ = is_in_lanes; }
  void set_packed(std::unordered_map<const ScalarNode*, PackedLoad> packed) {
    packed_ = std::move(packed);
  }
  /// What is computed is stored in two bytes: digits beyond those need not be right.
  void set_narrow(bool is_narrow) { is_narrow_ = is_narrow; }
  void name_loop(std::size_t loop, std::string name) { loops_[loop] = std::move(name); }

  std::string value(const Scalar& scalar);
  std::string extent(const Dim& dim) const;
  /// A statement that tells the host what the data does wrong.
  static std::string report(Check check);
  Place place(const std::vector<Scalar>& indices, const Dims& view, bool checks);
  std::string local(std::size_t id) const;
  std::string place_of(std::size_t id) const;
  /// Whether the number, with the lane loop at 0, is surely a multiple of the lanes.
  bool is_whole_pack(const Scalar& scalar) const;
  bool is_surely_inside(const Scalar& index, const Dim& extent) const;
  const std::map<std::size_t, std::int64_t>& loop_extents() const { return loop_extents_; }

 private:
  std::string new_value(const Scalar& scalar);
  std::string load(const Scalar& scalar);
  std::string type_of(const Scalar& scalar) const;
  std::string index_binary(const Scalar& scalar);
  std::string rounded_byte(const RoundedByte& byte, DType dtype);
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
