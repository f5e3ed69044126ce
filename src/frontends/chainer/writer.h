#pragma once

#include "frontends/chainer/functions.h"
#include "frontends/chainer/tables.h"
#include "frontends/own_node.h"
#include "ir/graph.h"

namespace tenon::chainer {

/// The training step of a graph as the dumper would have written it: operators that Chainer has a
/// function for under its name and with its attributes, where reading them gives the same node
/// back; all others, and those of `own`, under their own name in CamelCase with `_tenon`, which is
/// the operator as `own_node` has it. Throws Error of kind Unsupported that lists every value
/// without a size.
Tables tables_of(const Graph& graph, const OwnNodes& own = {});

/// A node, or a few, as one of Chainer's functions.
struct NativeFunction {
  std::string name;
  /// those of the function itself, in Chainer's order
  std::vector<Attribute> attributes;
  /// those that Chainer sets after the lists of retained indexes
  std::vector<Attribute> behind;
  /// as the function is called
  std::vector<ValueId> inputs;
  /// nodes before this one that the function computes too
  std::vector<NodeId> absorbed;
  /// results of the node that the function gives
  std::size_t output_count = 1;
};
/// Nothing where Chainer has no function for it.
std::optional<NativeFunction> native_function(const Graph& graph, NodeId node);

/// Which inputs and outputs of a node alone (see `own_node`) its gradient reads, by position.
/// Throws Error where it has none.
Retained retained_by_gradient(const Graph& record);

template <class T>
Attribute attribute(std::string_view name, T value) {
  return {std::string(name), Json(std::move(value)), 0};
}
inline Attribute integer_attribute(std::string_view name, std::int64_t value) {
  return attribute<std::int64_t>(name, value);
}
Attribute integers_attribute(std::string_view name, const std::vector<std::int64_t>& list);
/// A list of retained indexes; none is null.
Attribute indexes_attribute(std::string_view name, const std::vector<std::int64_t>& list);

}  // namespace tenon::chainer
