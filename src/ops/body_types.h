#pragma once

#include "ir/graph.h"
#include "ops/operand_types.h"

#include <string_view>
#include <vector>

namespace tenon {

/// What a body graph gives for inputs of certain types, told in the caller's symbols.
class BodyTypes {
 public:
  /// Throws Error, naming the op, if the body cannot take `inputs`.
  BodyTypes(std::string_view op, const OperandTypes& in, std::size_t body,
            const std::vector<Type>& inputs);

  std::size_t output_count() const { return body_.outputs().size(); }
  /// Extents that only the body's data decides are unknown ones of the node's own.
  Type output(std::size_t position);
  std::vector<Type> outputs();

 private:
  void bind(const Type& declared, const Type& given);
  void bind_alike(const Type& declared, const Type& given);

  const OperandTypes& in_;
  const Graph& body_;
  DimBindings bindings_;
};

/// The types of values that a body carries from one run to the next, whatever the number of runs:
/// `initial` with the extents that a run changes made unknown, and Unknown where it changes the
/// rank. The body takes `before`, the carried values and `after`; output 0 of the carried values is
/// its output `first_output`.
std::vector<Type> carried_types(std::string_view op, const OperandTypes& in, std::size_t body,
                                const std::vector<Type>& before, std::vector<Type> initial,
                                const std::vector<Type>& after, std::size_t first_output);

/// The type of a value that may be either. Throws Error, naming the op, if no value can be.
Type join_types(std::string_view op, const Type& a, const Type& b, const OperandTypes& in);

/// A tensor of this type, stacked along a new axis of the given extent; Unknown stays.
Type stacked_type(std::string_view op, const Type& slice, std::int64_t axis, const Dim& extent);
/// What a stacked result of no slices is: extents that are not known before become zero too.
Tensor empty_stack(const Type& stacked);

}  // namespace tenon
