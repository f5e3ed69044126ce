#pragma once

#include "ir/graph.h"
#include "ops/definition/operand_types.h"

#include <string_view>
#include <vector>

namespace tenon::inline ops {

/// Output types of a body graph for given input types, in the caller's symbols.
class BodyTypes {
 public:
  /// Throws Error, naming the op, if the body does not accept `inputs`.
  BodyTypes(std::string_view op, const OperandTypes& in, std::size_t body,
            const std::vector<Type>& inputs);

  /// Symbols that no input binds are the caller's, as in groups of nodes of one graph.
  void take_outer_symbols() { has_outer_symbols_ = true; }

  std::size_t output_count() const { return body_.outputs().size(); }
  /// Extents that depend on the body's data become unknown dims of the node.
  Type output(std::size_t position);
  std::vector<Type> outputs();

 private:
  void bind(const Type& declared, const Type& given);
  void bind_alike(const Type& declared, const Type& given);

  const OperandTypes& in_;
  const Graph& body_;
  DimBindings bindings_;
  bool has_outer_symbols_ = false;
};

/// Returns the types of loop-carried values for any trip count: `initial` with the extents that an
/// iteration changes made unknown, or Unknown if it changes the rank. The body takes `before`, the
/// carried values and `after`; its output `first_output` is the first carried value.
std::vector<Type> carried_types(std::string_view op, const OperandTypes& in, std::size_t body,
                                const std::vector<Type>& before, std::vector<Type> initial,
                                const std::vector<Type>& after, std::size_t first_output);

/// Returns the join of two types. Throws Error, naming the op, if no value has both types.
Type join_types(std::string_view op, const Type& a, const Type& b, const OperandTypes& in);

/// Returns the type of slices stacked along a new axis of the given extent; Unknown stays Unknown.
Type stacked_type(std::string_view op, const Type& slice, std::int64_t axis, const Dim& extent);
/// Returns the stacked result of zero iterations: extents that are still unknown become zero too.
Tensor empty_stack(const Type& stacked);

}  // namespace tenon::inline ops
