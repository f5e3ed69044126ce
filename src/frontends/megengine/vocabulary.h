#pragma once

#include "frontends/megengine/tables.h"
#include "ir/dtype.h"
#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tenon::megengine {

/// "Float32" -> F32; nothing for quantized and unknown ones.
std::optional<DType> dtype_of(std::string_view name);
/// Types that MegEngine has not are named alike: "Int64", "Float64".
std::string dtype_name(DType dtype);
/// Bits of an element, also of the quantized types.
std::optional<int> dtype_bits(std::string_view name);

/// A var's flags in the order they are written.
std::span<const std::string_view> flag_names();

/// The numbers of the modes of Reduce stand in default names: reduce4 takes the maximum.
std::span<const std::string_view> reduce_modes();

/// An operator's parameters as the footprint states them; what is missing is `otherwise`.
class Param {
 public:
  /// `param` may be null; it outlives this.
  explicit Param(const Json* param) : param_(param) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  bool boolean(std::string_view name, bool otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  const Json* find(std::string_view name) const;
  /// The elements, where the parameters are a list.
  const Json::Array* list() const;

 private:
  const Json* param_;
};

/// What a default name starts with ("conv", "ADD", "reduce4"); nothing where the type has no known
/// one. A constant's is that of `shape` and its only value, if it has one element.
std::optional<std::string> default_name(const Operator& opr, const Param& param);
std::string constant_name(const Extents& shape, std::optional<double> value);
/// The default name: start, inputs' names in brackets, number.
std::string full_name(std::string start, std::span<const std::string* const> inputs, ItemId id);
/// How many inputs a default name of the type lists; nothing for all of them.
std::optional<std::size_t> named_inputs(std::string_view type);
/// "conv(data,w)[5]" -> "conv[5]": how other names refer to it.
std::string short_name(std::string_view name);

/// Whether an input is only looked at by the host (its elements, before the kernel runs).
bool is_host_input(std::string_view type, std::size_t input);
/// Whether the first output may lie where the first input does.
bool is_view(std::string_view type);

/// The product of extents, held at the greatest integer; 0 for a shape that is not known.
std::int64_t count_of(const Extents& shape);
std::int64_t saturating_product(std::int64_t a, std::int64_t b);
std::int64_t saturating_sum(std::int64_t a, std::int64_t b);
/// Strides of a contiguous tensor; an axis of extent 1 has the stride its place gives it.
Extents contiguous_strides(const Extents& shape);
/// "[2, 3]"
std::string to_text(const Extents& extents);
/// as the document has reals
std::string fifteen_digits(double value);

/// The parameter that holds an operator of Tenon's own, as `own_node` writes it.
inline constexpr std::string_view kOwnParam = "tenon";
/// The format of a layout that is a scalar's, which MegEngine has as a vector of one element.
inline constexpr std::string_view kScalarFormat = "SCALAR";
/// Whether a format is a type with symbols, in a graph of that one input: the profile is of a run
/// with the least extents.
inline bool is_own_type(std::string_view format) { return format.starts_with("graph "); }
/// What a node is called as a type, where MegEngine has no word for it.
std::string tenon_type_of(const Graph& graph, NodeId node);
/// The operations of a node of Tenon's by its definition; of what only moves elements, those, as
/// MegEngine counts its own.
std::int64_t tenon_computation_of(const Graph& graph, NodeId node);

}  // namespace tenon::megengine
