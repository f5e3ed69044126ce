#pragma once

#include "ir/dim.h"
#include "ir/dtype.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tenon::inline ir {

/// Axis names of a tensor in memory order: "NCHW", "NHWC", "OIHW". A blocked layout ends in the
/// split axis: in "NCHW8c" axis C counts blocks and the last axis holds 8 channels. Empty if
/// unspecified.
class Layout {
 public:
  Layout() = default;
  /// Throws Error for text that is not a layout.
  explicit Layout(std::string text);

  bool is_empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  std::size_t rank() const;
  /// Position of axis `letter` ('C'; 'c' for the inner part of a blocked axis), or nullopt.
  std::optional<std::size_t> axis(char letter) const;
  /// 8 for the 'C' of "NCHW8c", 1 for an axis that is not blocked.
  std::int64_t block(char letter) const;
  bool operator==(const Layout&) const = default;

 private:
  std::string text_;
};

/// Dtype, extents and layout of a tensor. The dims are in memory order, slowest first: data is
/// always row-major over them, and the layout only names the axes.
struct TensorType {
  DType dtype = DType::F32;
  Dims dims;
  Layout layout;

  std::size_t rank() const { return dims.size(); }
  bool operator==(const TensorType&) const = default;
};

Dim element_count(const TensorType& type);
/// Bytes for reports and plans (sub-byte types packed).
Dim byte_count(const TensorType& type);
/// Returns e.g. "f32[N, 3, 224, 224]", "f32[1, 8]@NC".
std::string to_string(const TensorType& type);

/// Type of a value: a tensor, a sequence or optional of a type, or unknown until run time (a
/// data-dependent rank).
class Type {
 public:
  enum class Kind : std::uint8_t { Unknown, Tensor, Sequence, Optional };

  Type() = default;
  Type(TensorType tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}  // NOLINT
  static Type sequence(Type element);
  static Type optional(Type element);

  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  bool is_known() const { return kind_ != Kind::Unknown; }
  const TensorType& tensor() const;
  TensorType& tensor();
  const Type& element() const;
  bool operator==(const Type& other) const;

 private:
  Kind kind_ = Kind::Unknown;
  TensorType tensor_;
  std::shared_ptr<const Type> element_;
};

/// Returns e.g. "f32[2]", "seq(f32[2])", "optional(i64[])", "?".
std::string to_string(const Type& type);
Type substitute(const Type& type, const DimBindings& values);
/// Parses the text form of a type. Throws Error with the column on bad text.
Type parse_type(std::string_view text, const SymbolRanges& ranges = {});

}  // namespace tenon::inline ir
