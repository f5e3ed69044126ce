#pragma once

#include "documents/chainer/functions.h"
#include "documents/chainer/tables.h"
#include "documents/native_node.h"
#include "ir/graph.h"

namespace tenon::documents::chainer {

/// Returns the training step of a graph as the dumper would have written it. An operator with an
/// equivalent Chainer function uses its name and attributes, if importing it reproduces the node.
/// All others, and those of `own`, are native nodes: their own name in CamelCase and the text of
/// `native_node` in `_tenon`. Throws Error of kind Unsupported that lists every value without a
/// size.
Tables tables_of(const Graph& graph, const NativeNodes& own = {});

/// One or several nodes as a Chainer function.
struct NativeFunction {
  std::string name;
  /// Attributes of the function itself, in Chainer's order.
  std::vector<ChainerAttribute> attributes;
  /// Attributes that Chainer sets after the lists of retained indices.
  std::vector<ChainerAttribute> trailing;
  /// Operands of the call.
  std::vector<ValueId> inputs;
  /// Preceding nodes that the function includes.
  std::vector<NodeId> absorbed;
  /// Number of the node's results that the function returns.
  std::size_t output_count = 1;
};
/// Returns nullopt if Chainer has no equivalent function.
std::optional<NativeFunction> native_function(const Graph& graph, NodeId node);

/// Returns the positions of the inputs and outputs of an extracted node (see `native_node`) that
/// its gradient reads. Throws Error for a node without a gradient.
Retained retained_by_gradient(const Graph& record);

template <class T>
ChainerAttribute attribute(std::string_view name, T value) {
  return {std::string(name), frontends::JsonValue(std::move(value)), 0};
}
inline ChainerAttribute integer_attribute(std::string_view name, std::int64_t value) {
  return attribute<std::int64_t>(name, value);
}
ChainerAttribute integers_attribute(std::string_view name, const std::vector<std::int64_t>& list);
/// A list of retained indices; null if empty.
ChainerAttribute indexes_attribute(std::string_view name, const std::vector<std::int64_t>& list);

}  // namespace tenon::documents::chainer
