#include "documents/tensorscope/export_queries.h"

#include "base/error.h"
#include "documents/tensorscope/names.h"
#include "frontends/node_attrs.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::documents::tensorscope {
namespace {

const TensorType& tensor(const Graph& graph, ValueId id) { return graph.value(id).type.tensor(); }

bool is_number(const Graph& graph, ValueId id, double number) {
  const Constant* constant = id ? graph.constant_of(id) : nullptr;
  return constant != nullptr && constant->shape().empty() &&
         constant->kind() == Constant::Kind::Dense && constant->materialise().real_at(0) == number;
}

// Extents of the rows and columns of a filter.
std::optional<std::vector<std::int64_t>> filter_window(const TensorType& filter) {
  if (filter.rank() != 4) return std::nullopt;
  std::vector<std::int64_t> extents;
  for (const char letter : {'H', 'W'}) {
    const std::size_t usual = letter == 'H' ? 2 : 3;
    const auto axis = filter.layout.is_empty() ? usual : filter.layout.axis(letter);
    if (!axis) return std::nullopt;
    extents.push_back(filter.dims[*axis].constant());
  }
  return extents;
}

}  // namespace

TensorShape shape_of(const Graph& graph, ValueId id) {
  return {std::string(element_word(tensor(graph, id).dtype)), constants(tensor(graph, id).dims)};
}

bool is_filter(const Graph& graph, ValueId id) {
  const std::vector<NodeId>& readers = graph.readers(id);
  return !readers.empty() && tensor(graph, id).rank() == 4 &&
         std::ranges::all_of(readers, [&](NodeId reader) {
           const std::string_view op = graph.op_name(reader);
           const std::vector<ValueId>& operands = graph.node(reader).operands;
           return (op == "conv" || op == "conv_transpose") && operands[1] == id &&
                  operands[0] != id;
         });
}

std::int64_t groups_of(const Graph& graph, NodeId conv) {
  return frontends::integer_of(graph.node(conv), "groups").value_or(1);
}

TensorShape filter_shape(const Graph& graph, ValueId id) {
  TensorShape shape = shape_of(graph, id);
  const Layout& layout = tensor(graph, id).layout;
  std::vector<std::int64_t> extents;
  for (const char letter : std::string_view("HWIO")) {
    const auto axis = layout.is_empty() ? std::optional(std::string_view("OIHW").find(letter))
                                        : layout.axis(letter);
    if (!axis || layout.rank() > 4) return shape;
    extents.push_back(shape.extents[*axis]);
  }
  const std::int64_t groups = groups_of(graph, graph.readers(id).front());
  if (groups > 1 && extents[2] == 1) {
    extents[2] = groups;
    extents[3] /= groups;
  }
  shape.extents = extents;
  return shape;
}

bool is_relu6(const Graph& graph, NodeId id) {
  const std::vector<ValueId>& operands = graph.node(id).operands;
  return graph.op_name(id) == "clip" && operands.size() == 3 && is_number(graph, operands[1], 0) &&
         is_number(graph, operands[2], 6);
}

std::optional<TensorFlowPadding> padding_of_its_own(const Graph& graph, NodeId id) {
  const std::string_view op = graph.op_name(id);
  const Node& node = graph.node(id);
  const bool is_pool = op == "max_pool" || op == "average_pool";
  if (op != "conv" && !is_pool) return std::nullopt;
  const TensorType &image = tensor(graph, node.operands[0]),
                   &result = tensor(graph, node.results[0]);
  const bool is_last = image.layout.text() == "NHWC";
  const bool is_plain = image.layout.is_empty() || is_last || image.layout.text() == "NCHW";
  if (image.rank() != 4 || !is_plain || result.layout != image.layout) return std::nullopt;
  const auto window = frontends::window_numbers(node, 2);
  if (!window) return std::nullopt;
  const TensorFlowPadding padding{is_last ? 1u : 2u, window->pads};
  const auto [least, greatest] = std::ranges::minmax(padding.pads);
  if ((least == 0 && greatest == 0) || least < 0) return std::nullopt;
  const auto kernel =
      is_pool ? std::optional(window->kernel) : filter_window(tensor(graph, node.operands[1]));
  if (!kernel) return std::nullopt;
  bool is_same = true;
  for (std::size_t k = 0; k < 2; ++k) {
    const std::int64_t from = image.dims[padding.first_axis + k].constant();
    const std::int64_t to = result.dims[padding.first_axis + k].constant();
    const std::int64_t reach = window->dilations[k] * ((*kernel)[k] - 1) + 1;
    const std::int64_t total =
        std::max<std::int64_t>((to - 1) * window->strides[k] + reach - from, 0);
    is_same = is_same && to == (from + window->strides[k] - 1) / window->strides[k] &&
              padding.pads[k] == total / 2 && padding.pads[2 + k] == total - total / 2;
  }
  return is_same ? std::nullopt : std::optional(padding);
}

DeviceName parse_device(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto index = colon == std::string::npos
                         ? std::nullopt
                         : plain_number(std::string_view(text).substr(colon + 1));
  const std::string type = text.substr(0, colon);
  const bool is_type =
      !type.empty() && type.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
  if (!is_type || !index)
    throw Error("not a device").expected("TYPE:NUMBER, as in GPU:0").got("'", text, "'");
  return {type, *index};
}

void require_shapes(const Graph& graph) {
  std::string list;
  std::size_t count = 0;
  const auto require = [&](ValueId id) {
    const Type& type = graph.value(id).type;
    const bool fits = type.is_tensor() && all_constant(type.tensor().dims) &&
                      !element_word(type.tensor().dtype).empty();
    if (fits) return;
    if (++count <= 20) list += concat("\n  - '", graph.value(id).name, "': ", type);
  };
  for (const ValueId id : graph.inputs()) require(id);
  for (const NodeId id : graph.nodes_in_order()) {
    for (const ValueId result : graph.node(id).results) {
      if (result) require(result);
    }
  }
  if (count == 0) return;
  throw Error(concat("cannot write the table of a step: ", count,
                     count == 1 ? " value has" : " values have",
                     " no fixed shape of TensorFlow's types", list),
              ErrorKind::Unsupported)
      .at("graph '", graph.name, "'")
      .hint("give numbers for symbolic extents: zoo:NAME?batch=1");
}

std::vector<ValueId> external_operands(const Graph& graph, const std::vector<NodeId>& nodes) {
  const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
  std::vector<ValueId> found, stack;
  const auto push = [&](NodeId id) {
    const std::vector<ValueId>& operands = graph.node(id).operands;
    for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand) {
      if (*operand) stack.push_back(*operand);
    }
  };
  std::unordered_set<NodeId> expanded;
  push(nodes.back());
  while (!stack.empty()) {
    const ValueId id = stack.back();
    stack.pop_back();
    const NodeId producer = graph.value(id).producer;
    if (producer && inside.contains(producer)) {
      if (expanded.insert(producer).second) push(producer);
      continue;
    }
    const bool is_number = graph.constant_of(id) != nullptr && tensor(graph, id).rank() == 0;
    const bool is_known = std::find(found.begin(), found.end(), id) != found.end();
    if (nodes.size() == 1 || (!is_number && !is_known)) found.push_back(id);
  }
  return found;
}

std::vector<std::string> folded_names(const std::string& node, std::size_t input) {
  std::vector<std::string> names{concat(node, "-", input, "-LayoutOptimizer")};
  if (const auto gradient = gradient_name(node)) {
    names.push_back(concat("ConstantFolding/", gradient->scope, "/ShapeN-matshapes-", input));
  }
  return names;
}

}  // namespace tenon::documents::tensorscope
