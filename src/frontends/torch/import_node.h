#pragma once

#include "frontends/json.h"
#include "ir/attribute.h"
#include "ir/graph.h"
#include "ir/type.h"
#include "tenon/builder.h"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::frontends::torch {

class TorchImporter;

/// Import of one node of an exported program: the interface of import handlers. Arguments have the
/// names of the operator's schema; an argument that equals its default is absent. A handler adds
/// nodes through `build` or `call`, and defines the results. The program states the type of every
/// result: a result of another element type is cast.
class NodeImport {
 public:
  NodeImport(TorchImporter& importer, const JsonReader& node, std::string_view op,
             std::string_view overload);

  /// Operator and overload: "add" and "Tensor" of `torch.ops.aten.add.Tensor`.
  const std::string_view op, overload;
  Builder& build;

  /// Returns whether the argument is given and differs from None.
  bool has(std::string_view name) const;
  bool is_tensor(std::string_view name) const;
  /// The first argument, whatever its name.
  Var first() const;
  /// Throws Error if it is missing or of another kind.
  Var tensor(std::string_view name) const;
  /// An invalid Var if it is missing.
  Var tensor_or_none(std::string_view name) const;
  /// A list of tensors; an absent one is an invalid Var.
  std::vector<Var> tensors(std::string_view name) const;
  /// A tensor, or a constant for a number, cast to this element type.
  Var operand(std::string_view name, DType dtype) const;

  Dim extent(std::string_view name, std::optional<Dim> otherwise = {}) const;
  Dims extents(std::string_view name, Dims otherwise = {}) const;
  /// Reports the node as unsupported if the number depends on symbols.
  std::int64_t integer(std::string_view name, std::optional<std::int64_t> otherwise = {}) const;
  /// A single number counts as a list of one.
  std::vector<std::int64_t> integers(std::string_view name,
                                     std::vector<std::int64_t> otherwise = {}) const;
  /// Numbers for each of `count` axes; a single one, or the default, counts for all.
  Dims for_axes(std::string_view name, std::size_t count, std::int64_t otherwise) const;
  double real(std::string_view name, std::optional<double> otherwise = {}) const;
  std::vector<double> reals(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise = false) const;
  std::string text(std::string_view name, std::string otherwise = "") const;
  /// The element type of `dtype`-like arguments.
  std::optional<DType> element(std::string_view name) const;
  /// Returns an axis of a tensor with `rank` axes, counted from the front.
  std::size_t axis(std::string_view name, std::size_t rank,
                   std::optional<std::int64_t> otherwise = {}) const;
  /// Returns axes, counted from the front; all axes if the argument is missing or empty.
  std::vector<std::int64_t> axes(std::string_view name, std::size_t rank) const;

  /// Element type that PyTorch computes in for these arguments: tensors take precedence over
  /// tensors without axes, and those over numbers, unless the others are of a higher kind.
  DType promoted(std::initializer_list<std::string_view> names) const;

  /// Stated type of a result.
  const TensorType& result_type(std::size_t index = 0) const;
  const Dims& result_dims() const { return result_type().dims; }
  DType result_dtype() const { return result_type().dtype; }
  std::size_t result_count() const { return result_names_.size(); }
  /// The first result is complex: its last axis holds pairs of real numbers that PyTorch does not
  /// count as an axis.
  bool is_complex() const;
  bool is_complex(std::string_view name) const;

  Dims dims(Var value) const { return build.type(value).tensor().dims; }
  DType dtype(Var value) const { return build.type(value).tensor().dtype; }
  std::size_t rank(Var value) const { return dims(value).size(); }

  Var call(std::string_view called, const std::vector<Var>& operands, Attributes attrs = {}) const;
  std::vector<Var> call_all(std::string_view called, const std::vector<Var>& operands,
                            Attributes attrs, std::size_t count) const;
  /// A constant scalar.
  Var number(double value, DType dtype) const;
  /// A scalar i64 with the value of an extent.
  Var number_of(const Dim& extent) const;
  Var permuted(Var value, const std::vector<std::int64_t>& perm) const;
  /// Exchanges two axes.
  Var swapped(Var value, std::size_t a, std::size_t b) const;

  void result(Var value) { results({value}); }
  /// Results by position; missing ones must have no readers. `has_stated_extents` is false for
  /// operators whose extents programs are known to state wrongly.
  void results(const std::vector<Var>& values, bool has_stated_extents = true);

  /// Aborts the import of this node and adds it to the list of unsupported operators.
  [[noreturn]] void unsupported(std::string reason) const;

 private:
  std::optional<JsonReader> argument(std::string_view name) const;
  JsonReader required(std::string_view name) const;

  TorchImporter& importer_;
  JsonReader node_;
  std::vector<std::pair<std::string_view, JsonReader>> arguments_;
  std::vector<std::string> result_names_;
  std::uint32_t first_new_value_;
};

/// The text of an enumerated attribute.
inline AttrValue word(std::string text) { return AttrValue(std::move(text)); }
inline Dim axis_dim(std::size_t axis) { return static_cast<std::int64_t>(axis); }
/// A list of numbers as an attribute.
Dims as_dims(std::span<const std::int64_t> numbers);

struct Handler {
  std::string_view op;
  void (*import)(NodeImport&);
};

/// Handlers per source file of the same name.
std::span<const Handler> elementwise_handlers();    // import_elementwise.cpp
std::span<const Handler> reduction_handlers();      // import_reduction.cpp
std::span<const Handler> shape_handlers();          // import_shape.cpp
std::span<const Handler> indexing_handlers();       // import_indexing.cpp
std::span<const Handler> creation_handlers();       // import_creation.cpp
std::span<const Handler> contraction_handlers();    // import_contraction.cpp
std::span<const Handler> window_handlers();         // import_window.cpp
std::span<const Handler> normalization_handlers();  // import_normalization.cpp
std::span<const Handler> recurrent_handlers();      // import_recurrent.cpp
std::span<const Handler> complex_handlers();        // import_complex.cpp
/// Null for an operator without a handler.
const Handler* find_handler(std::string_view op);

}  // namespace tenon::frontends::torch
