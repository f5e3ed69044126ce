#pragma once

#include "documents/megengine/tables.h"
#include "ir/dtype.h"
#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tenon::documents::megengine {

/// "Float32" -> F32; nullopt for quantized and unknown types.
std::optional<DType> dtype_of(std::string_view name);
/// Types that MegEngine lacks are named by the same scheme: "Int64", "Float64".
std::string dtype_name(DType dtype);
/// Bits of an element, also of the quantized types.
std::optional<int> dtype_bits(std::string_view name);

/// A var's flags in printing order.
std::span<const std::string_view> flag_names();

/// Modes of Reduce by their number in default names: reduce4 is the maximum.
std::span<const std::string_view> reduce_modes();

/// An operator's parameters in its footprint; missing ones are `otherwise`.
class Param {
 public:
  /// `param` may be null, and must outlive this object.
  explicit Param(const frontends::JsonValue* param) : param_(param) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  bool boolean(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  const frontends::JsonValue* find(std::string_view name) const;
  /// The elements of a parameter list.
  const frontends::JsonValue::Array* list() const;

 private:
  const frontends::JsonValue* param_;
};

/// Returns the start of a default name ("conv", "ADD", "reduce4"); nullopt for unknown types. For a
/// constant it depends on `shape` and on the value if it has one element.
std::optional<std::string> default_name(const Operator& opr, const Param& param);
std::string constant_name(const Extents& shape, std::optional<double> value);
/// Returns the default name: start, inputs' names in brackets, number.
std::string full_name(std::string start, std::span<const std::string* const> inputs, ItemId id);
/// Returns how many inputs a default name of the type lists; nullopt for all.
std::optional<std::size_t> named_inputs(std::string_view type);
/// "conv(data,w)[5]" -> "conv[5]", the short form in other names.
std::string short_name(std::string_view name);

/// Returns whether only the host reads the input (its elements, before the kernel runs).
bool is_host_input(std::string_view type, std::size_t input);
/// Returns whether the first output may alias the first input.
bool is_view(std::string_view type);

/// Product of extents, saturated; 0 for an unknown shape.
std::int64_t count_of(const Extents& shape);
std::int64_t saturating_product(std::int64_t a, std::int64_t b);
std::int64_t saturating_sum(std::int64_t a, std::int64_t b);
/// Strides of a contiguous tensor; an axis of extent 1 has the stride of its position.
Extents contiguous_strides(const Extents& shape);
/// "[2, 3]"
std::string to_text(const Extents& extents);
/// with 15 digits, as in the document
std::string fifteen_digits(double value);

/// Parameter with the record of a native Tenon operator (`native_node`).
inline constexpr std::string_view kOwnParam = "tenon";
/// Format of a scalar, which MegEngine represents as a vector of one element.
inline constexpr std::string_view kScalarFormat = "SCALAR";
/// Returns whether a format is a symbolic type, as a graph with that one input: the profile
/// describes a run with the least extents.
inline bool is_own_type(std::string_view format) { return format.starts_with("graph "); }
/// Returns the type name of a node that MegEngine lacks.
std::string tenon_type_of(const Graph& graph, NodeId node);
/// Returns the operations of a Tenon node by its definition; for data movement the number of
/// elements, as MegEngine counts.
std::int64_t tenon_computation_of(const Graph& graph, NodeId node);

}  // namespace tenon::documents::megengine
