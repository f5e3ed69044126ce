#include "documents/relay/window.h"

#include "base/error.h"

namespace tenon::documents::relay {

std::size_t spatial_count(std::string_view op) {
  for (const std::size_t count : {1U, 3U}) {
    if (op.find(concat(count, "d")) != std::string_view::npos) return count;
  }
  return 2;
}

std::string spatial_letters(std::size_t count) { return std::string("DHW").substr(3 - count); }

Integers along_each_axis(const CallImport& call, std::string_view attribute, std::size_t count) {
  Integers numbers = call.integers(attribute);
  if (numbers.size() == 1) numbers.resize(count, numbers.front());
  if (numbers.size() != count) {
    throw call.error(concat("the attribute '", attribute, "' has another number of axes"))
        .expected(count)
        .got(numbers.size());
  }
  return numbers;
}

Integers pads_around(const CallImport& call, std::size_t count) {
  Integers pads = call.integers("padding");
  if (pads.size() == 1) pads.resize(count, pads.front());
  if (pads.size() == count) {
    const Integers ends = pads;
    pads.insert(pads.end(), ends.begin(), ends.end());
  }
  if (pads.size() != 2 * count) {
    throw call.error("the attribute 'padding' has another number of axes")
        .expected("1, ", count, " or ", 2 * count)
        .got(pads.size());
  }
  return pads;
}

Var with_bias(Builder& builder, Var value, Var bias, std::int64_t axis) {
  Graph& graph = builder.graph();
  const ValueId id(value.id());
  const NodeId producer = graph.value(id).producer;
  if (!producer || !graph.readers(id).empty()) return {};
  const Node& node = graph.node(producer);
  const bool is_convolution = node.op->name == "conv" || node.op->name == "conv_transpose";
  if (!is_convolution || node.operands.size() != 2) return {};
  const TensorType& type = graph.value(id).type.tensor();
  const std::size_t channels = type.layout.axis('C').value_or(1);
  if (axis < 0) axis += static_cast<std::int64_t>(type.rank());
  if (axis != static_cast<std::int64_t>(channels) || type.layout.block('C') != 1) return {};
  if (builder.rank(bias) != 1) return {};
  Graph::NewNode with;
  with.op = node.op;
  with.operands = {node.operands[0], node.operands[1], ValueId(bias.id())};
  with.attrs = node.attrs;
  with.name = node.name;
  with.results = {""};
  const NodeId made = graph.add_node(std::move(with));
  const ValueId result = graph.node(made).results.front();
  graph.swap_names(id, result);
  graph.erase(producer);
  return {&builder, result.index()};
}

}  // namespace tenon::documents::relay
