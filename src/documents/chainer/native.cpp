#include "documents/chainer/solver.h"
#include "documents/chainer/writer.h"
#include "frontends/node_attrs.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon::documents::chainer {
namespace {

using Integers = std::vector<std::int64_t>;

// Accessors to a node's attributes and operands for the rules below.
class NodeReader {
 public:
  NodeReader(const Graph& graph, NodeId id) : graph_(graph), node_(graph.node(id)) {}

  std::size_t operand_count() const { return node_.operands.size(); }
  ValueId operand(std::size_t k) const {
    return k < node_.operands.size() ? node_.operands[k] : ValueId{};
  }
  const TensorType& type(ValueId value) const { return graph_.value(value).type.tensor(); }
  const TensorType& type(std::size_t k) const { return type(operand(k)); }
  const TensorType& result() const { return type(node_.results[0]); }
  const Constant* constant(std::size_t k) const {
    return operand(k) ? graph_.constant_of(operand(k)) : nullptr;
  }
  std::optional<double> scalar(std::size_t k) const {
    const Constant* found = constant(k);
    if (found == nullptr || !found->shape().empty() || is_complex(found->dtype()) ||
        found->dtype() == DType::String) {
      return std::nullopt;
    }
    return found->materialise().real_at(0);
  }

  bool has(std::string_view name) const { return node_.attrs.find(name) != nullptr; }
  std::int64_t integer(std::string_view name) const {
    return frontends::integer_of(node_, name).value_or(0);
  }
  double real(std::string_view name) const { return frontends::real_of(node_, name); }
  bool flag(std::string_view name) const { return frontends::flag_of(node_, name); }
  Integers integers(std::string_view name) const {
    return frontends::integers_of(node_, name).value_or(Integers());
  }

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }

 private:
  const Graph& graph_;
  const Node& node_;
};

using Rule = std::optional<NativeFunction> (*)(const NodeReader&);
using Native = std::optional<NativeFunction>;

std::size_t reader_count(const Graph& graph, ValueId value) {
  return graph.readers(value).size() + (graph.is_output(value) ? 1 : 0);
}

// Function with all operands as inputs.
NativeFunction named(const NodeReader& in, std::string name,
                     std::vector<ChainerAttribute> attributes = {}) {
  NativeFunction native;
  native.name = std::move(name);
  native.attributes = std::move(attributes);
  native.inputs = in.node().operands;
  return native;
}

std::optional<frontends::WindowNumbers> window_of(const NodeReader& in) {
  return in.type(0).rank() == 4 ? frontends::window_numbers(in.node(), 2) : std::nullopt;
}
std::vector<ChainerAttribute> stride_and_pad(const frontends::WindowNumbers& window) {
  return {integer_attribute("sy", window.strides[0]), integer_attribute("sx", window.strides[1]),
          integer_attribute("ph", window.pads[0]), integer_attribute("pw", window.pads[1])};
}
void add_dilation_and_groups(std::vector<ChainerAttribute>& attributes,
                             const frontends::WindowNumbers& window, std::int64_t groups) {
  attributes.push_back(integer_attribute("dy", window.dilations[0]));
  attributes.push_back(integer_attribute("dx", window.dilations[1]));
  attributes.push_back(integer_attribute("groups", groups));
}

Native convolution(const NodeReader& in) {
  const auto window = window_of(in);
  if (!window) return std::nullopt;
  NativeFunction native = named(in, "Convolution2DFunction", stride_and_pad(*window));
  native.attributes.push_back(attribute("cover_all", false));
  add_dilation_and_groups(native.attributes, *window, in.integer("groups"));
  return native;
}

Native deconvolution(const NodeReader& in) {
  const auto window = window_of(in);
  if (!window) return std::nullopt;
  NativeFunction native = named(in, "Deconvolution2DFunction", stride_and_pad(*window));
  const Integers y = constants(in.result().dims);
  native.attributes.push_back(integer_attribute("outh", y[2]));
  native.attributes.push_back(integer_attribute("outw", y[3]));
  add_dilation_and_groups(native.attributes, *window, in.integer("groups"));
  native.trailing = {attribute("cover_all", false)};
  return native;
}

Native pooling(const NodeReader& in, std::string name) {
  const auto window = window_of(in);
  if (!window) return std::nullopt;
  std::vector<ChainerAttribute> attributes{integer_attribute("kh", window->kernel[0]),
                                           integer_attribute("kw", window->kernel[1])};
  for (ChainerAttribute& each : stride_and_pad(*window)) attributes.push_back(std::move(each));
  attributes.push_back(attribute("cover_all", in.flag("ceil_mode")));
  attributes.push_back(attribute("return_indices", false));
  attributes.push_back(attribute("_used_cudnn", true));
  return named(in, std::move(name), std::move(attributes));
}
Native max_pooling(const NodeReader& in) { return pooling(in, "MaxPooling2D"); }
Native average_pooling(const NodeReader& in) { return pooling(in, "AveragePooling2D"); }

// Maps an operator to its function; with a numeric operand it is another function.
Native plain(const NodeReader& in) {
  using Number = FunctionRule::Number;
  for (const std::size_t at : {1, 0}) {
    const FunctionRule* rule =
        in.scalar(at) ? find_rule_of(in.node().op->name, at == 1 ? Number::Second : Number::First)
                      : nullptr;
    if (rule == nullptr) continue;
    NativeFunction native =
        named(in, std::string(rule->name), {attribute("value", *in.scalar(at))});
    native.inputs = {in.operand(1 - at)};
    return native;
  }
  const FunctionRule* rule = find_rule_of(in.node().op->name, Number::None);
  if (rule == nullptr || (in.operand_count() == 2 && in.type(0) != in.type(1))) return std::nullopt;
  return named(in, std::string(rule->name));
}

Native leaky_relu(const NodeReader& in) {
  return named(in, "LeakyReLU", {attribute("slope", in.real("alpha"))});
}
Native elu(const NodeReader& in) {
  return named(in, "ELU", {attribute("alpha", in.real("alpha"))});
}
Native clipped_relu(const NodeReader& in) {
  if (in.scalar(1) != 0.0 || !in.scalar(2)) return std::nullopt;
  NativeFunction native = named(in, "ClippedReLU", {attribute("cap", *in.scalar(2))});
  native.inputs = {in.operand(0)};
  return native;
}
Native dropout(const NodeReader& in) {
  if (!in.scalar(1) || in.scalar(2) != 0.0) return std::nullopt;
  NativeFunction native = named(in, "Dropout", {attribute("dropout_ratio", *in.scalar(1))});
  native.inputs = {in.operand(0)};
  return native;
}
Native response_normalization(const NodeReader& in) {
  const std::int64_t size = in.integer("size");
  // Rounded to few decimals if that converts back exactly.
  const double alpha = in.real("alpha") / static_cast<double>(size);
  double rounded = std::stod(concat(std::llround(alpha * 1e12), "e-12"));
  if (rounded * static_cast<double>(size) != in.real("alpha")) rounded = alpha;
  return named(in, "LocalResponseNormalization",
               {integer_attribute("n", size), attribute("k", in.real("bias")),
                attribute("alpha", rounded), attribute("beta", in.real("beta")),
                attribute("indexes", nullptr), attribute("unit_scale", nullptr)});
}

Native along_axis(const NodeReader& in) {
  const std::string& op = in.node().op->name;
  return named(in,
               op == "softmax"  ? "Softmax"
               : op == "concat" ? "Concat"
                                : "LogSoftmax",
               {integer_attribute("axis", in.integer("axis"))});
}

Native get_item(const NodeReader& in) {
  const Integers starts = in.integers("starts"), ends = in.integers("ends"),
                 axes = in.integers("axes");
  Integers steps = in.integers("steps");
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (in.operand_count() != 1 || axes.empty() || starts.size() != axes.size() ||
      ends.size() != axes.size() || steps.size() != axes.size()) {
    return std::nullopt;
  }
  std::vector<Subscript> subscripts(in.type(0).rank());
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] < 0 || axes[k] >= static_cast<std::int64_t>(subscripts.size()) || steps[k] < 1)
      return std::nullopt;
    Subscript& subscript = subscripts[static_cast<std::size_t>(axes[k])];
    subscript.start = starts[k];
    subscript.stop = ends[k];
    if (steps[k] != 1) subscript.step = steps[k];
  }
  return named(in, "GetItem", {attribute("slices", print_subscripts(subscripts))});
}

Native reshape(const NodeReader& in) {
  const Integers shape = in.integers("shape");
  if (in.operand_count() != 1 || std::find(shape.begin(), shape.end(), 0) != shape.end())
    return std::nullopt;
  return named(in, "Reshape",
               {integers_attribute("shape", shape),
                integer_attribute("_cnt", std::count(shape.begin(), shape.end(), -1))});
}
Native transposition(const NodeReader& in) {
  const Integers perm = in.integers("perm");
  return named(in, "Transpose",
               {perm.empty() ? attribute("axes", nullptr) : integers_attribute("axes", perm)});
}
Native expansion(const NodeReader& in) {
  if (in.operand_count() != 1) return std::nullopt;
  return named(in, "BroadcastTo", {integers_attribute("_shape", in.integers("shape"))});
}
Native new_axis(const NodeReader& in) {
  const Integers axes = in.integers("axes");
  if (in.operand_count() != 1 || axes.size() != 1) return std::nullopt;
  return named(in, "ExpandDims", {integer_attribute("axis", axes[0])});
}
Native dropped_axes(const NodeReader& in) {
  if (in.operand_count() != 1 || in.integers("axes").empty()) return std::nullopt;
  return named(in, "Squeeze", {integers_attribute("axis", in.integers("axes"))});
}
Native split(const NodeReader& in) {
  const Integers sizes = in.integers("sizes");
  if (in.operand_count() != 1 || sizes.empty()) return std::nullopt;
  Integers places;
  for (std::size_t k = 0; k + 1 < sizes.size(); ++k)
    places.push_back(sizes[k] + (places.empty() ? 0 : places.back()));
  return named(in, "SplitAxis",
               {integers_attribute("indices_or_sections", places),
                integer_attribute("axis", in.integer("axis"))});
}
Native sum(const NodeReader& in) {
  if (in.operand_count() != 1 || in.flag("noop_if_empty")) return std::nullopt;
  const Integers axes = in.integers("axes");
  return named(in, "Sum",
               {axes.empty() ? attribute("axis", nullptr) : integers_attribute("axis", axes),
                attribute("keepdims", in.flag("keep_axes"))});
}
Native embedding(const NodeReader& in) {
  if (in.integer("axis") != 0 || in.type(0).rank() != 2 || in.constant(1) != nullptr)
    return std::nullopt;
  NativeFunction native = named(in, "EmbedIDFunction", {attribute("ignore_label", nullptr)});
  native.inputs = {in.operand(1), in.operand(0)};
  native.trailing = {integers_attribute("_w_shape", constants(in.type(0).dims))};
  return native;
}

std::vector<ChainerAttribute> batch_norm_attributes(const NodeReader& in) {
  Integers axes;
  const std::int64_t key = in.integer("axis");
  std::vector<Subscript> expander(in.type(0).rank(),
                                  Subscript{Subscript::Kind::NewAxis, {}, {}, {}});
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(in.type(0).rank()); ++axis) {
    if (axis != key) axes.push_back(axis);
  }
  if (key >= 0 && key < static_cast<std::int64_t>(expander.size()))
    expander[static_cast<std::size_t>(key)] = {};
  return {integers_attribute("axis", axes), integers_attribute("key_axis", {key}),
          attribute("expander", print_subscripts(expander)), attribute("use_cudnn", true),
          attribute("use_ideep", false)};
}
Native fixed_batch_norm(const NodeReader& in) {
  std::vector<ChainerAttribute> all = batch_norm_attributes(in);
  NativeFunction native =
      named(in, "FixedBatchNormalization", {attribute("eps", in.real("epsilon")), all[0]});
  native.trailing.assign(all.begin() + 1, all.end());
  return native;
}
Native batch_norm(const NodeReader& in) {
  std::vector<ChainerAttribute> all = batch_norm_attributes(in);
  NativeFunction native = named(
      in, "BatchNormalization",
      {attribute("eps", in.real("epsilon")), attribute("decay", in.real("momentum")), all[0]});
  native.trailing.assign(all.begin() + 1, all.end());
  native.inputs.resize(3);
  return native;
}

// Returns the producer of an operand if it is `op` and has no other reader.
const Node* only_for(const NodeReader& in, ValueId value, std::string_view op) {
  const NodeId producer = in.graph().value(value).producer;
  if (!producer || in.graph().op_name(producer) != op || reader_count(in.graph(), value) != 1)
    return nullptr;
  return &in.graph().node(producer);
}

// Linear layer x W^T, if W^T is a transpose with a single reader.
Native product(const NodeReader& in) {
  if (const Node* flip = only_for(in, in.operand(1), "transpose")) {
    const NodeReader flipped(in.graph(), in.graph().value(in.operand(1)).producer);
    if (flipped.integers("perm") == Integers{1, 0} && in.type(0).rank() == 2 &&
        !in.has("out_dtype") && in.graph().constant_of(flip->operands[0]) != nullptr) {
      NativeFunction native = named(in, "LinearFunction");
      native.inputs = {in.operand(0), flip->operands[0]};
      native.absorbed = {in.graph().value(in.operand(1)).producer};
      native.trailing = {attribute("_config_use_ideep", std::string("never"))};
      return native;
    }
  }
  return named(
      in, "MatMul",
      {attribute("transa", false), attribute("transb", false), attribute("transc", false)});
}

// Bias of a linear layer, or an addition.
Native addition(const NodeReader& in) {
  if (const Node* product_node = only_for(in, in.operand(0), "matmul");
      product_node != nullptr && in.constant(1) != nullptr && in.type(1).rank() == 1) {
    const NodeId id = in.graph().value(in.operand(0)).producer;
    if (Native linear = product(NodeReader(in.graph(), id));
        linear && linear->name == "LinearFunction") {
      linear->inputs.push_back(in.operand(1));
      linear->absorbed.push_back(id);
      return linear;
    }
  }
  return plain(in);
}

Native cross_entropy(const NodeReader& in) {
  const Node* logs = only_for(in, in.operand(0), "log_softmax");
  if (logs == nullptr || in.operand(2)) return std::nullopt;
  const NodeId id = in.graph().value(in.operand(0)).producer;
  const std::string reduction = frontends::text_of(in.node(), "reduction");
  if (NodeReader(in.graph(), id).integer("axis") != 1 || !in.has("ignore_index") ||
      reduction == "sum")
    return std::nullopt;
  NativeFunction native =
      named(in, "SoftmaxCrossEntropy",
            {attribute("normalize", true), attribute("cache_score", true),
             attribute("class_weight", nullptr),
             integer_attribute("ignore_label",
                               frontends::integer_of(in.node(), "ignore_index").value_or(-1)),
             attribute("reduce", std::string(reduction == "none" ? "no" : "mean"))});
  native.inputs = {logs->operands[0], in.operand(1)};
  native.absorbed = {id};
  return native;
}

const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = {
      {"conv", convolution},
      {"conv_transpose", deconvolution},
      {"max_pool", max_pooling},
      {"average_pool", average_pooling},
      {"leaky_relu", leaky_relu},
      {"elu", elu},
      {"clip", clipped_relu},
      {"add", addition},
      {"concat", along_axis},
      {"slice", get_item},
      {"reshape", reshape},
      {"transpose", transposition},
      {"expand", expansion},
      {"unsqueeze", new_axis},
      {"squeeze", dropped_axes},
      {"split", split},
      {"reduce_sum", sum},
      {"gather", embedding},
      {"softmax", along_axis},
      {"log_softmax", along_axis},
      {"lrn", response_normalization},
      {"batch_norm", fixed_batch_norm},
      {"batch_norm_training", batch_norm},
      {"matmul", product},
      {"dropout", dropout},
      {"nll_loss", cross_entropy},
  };
  return table;
}

// Returns whether importing the function over the same inputs reproduces this node.
bool reads_back(const Graph& graph, NodeId id, const NativeFunction& native) {
  const FunctionRule* rule = find_rule(native.name);
  if (rule == nullptr || native.inputs.size() > rule->most_inputs ||
      native.inputs.size() < rule->least_inputs)
    return false;
  Builder scratch;
  std::map<ValueId, Var> vars;
  Tables tables;
  Function forward, backward;
  std::vector<Var> inputs;
  for (const ValueId input : native.inputs) {
    if (!vars.contains(input)) {
      const std::string name = concat("x", vars.size());
      vars[input] = scratch.input(name, graph.value(input).type);
      tables.variables.push_back({static_cast<std::int64_t>(vars.size()), 0, "/" + name});
      forward.inputs.push_back({vars.size() - 1, Tag::Value});
    }
    backward.inputs.push_back({vars[input].id(), Tag::Input});
    inputs.push_back(vars[input]);
  }
  const Node& node = graph.node(id);
  for (std::size_t k = 0; k < native.output_count; ++k) {
    forward.outputs.push_back(tables.variables.size());
    tables.variables.push_back({static_cast<std::int64_t>(tables.variables.size()) + 1, 0, "_"});
  }
  forward.name = native.name;
  forward.attributes = native.attributes;
  forward.attributes.insert(forward.attributes.end(), native.trailing.begin(),
                            native.trailing.end());
  tables.forward = {forward};
  tables.backward = {backward};
  std::vector<Var> made;
  try {
    const FunctionView view(tables, 0, "graph");
    PartialShapes shapes(tables.variables.size());
    for (const auto& [input, var] : vars) {
      if (!shapes.set_shape(var.id(), constants(graph.value(input).type.tensor().dims)))
        return false;
    }
    if (!rule->relate(view)(shapes)) return false;
    made = rule->build(view, scratch, inputs);
  } catch (const Error&) {
    return false;
  }
  const Graph& again = scratch.graph();
  const NodeId made_by = again.value(ValueId(made[0].id())).producer;
  if (!made_by || again.op_name(made_by) != node.op->name ||
      again.node(made_by).attrs != node.attrs)
    return false;
  if (made.size() != native.output_count) return false;
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (again.value(ValueId(made[k].id())).type != graph.value(node.results[k]).type) return false;
  }
  if (!native.absorbed.empty()) return true;
  const Node& rebuilt = again.node(made_by);
  if (rebuilt.operands.size() != node.operands.size() ||
      rebuilt.results.size() != node.results.size())
    return false;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (vars.contains(node.operands[k])) {
      if (rebuilt.operands[k].index() != vars[node.operands[k]].id()) return false;
      continue;
    }
    const Constant *a = graph.constant_of(node.operands[k]),
                   *b = again.constant_of(rebuilt.operands[k]);
    if (a == nullptr || b == nullptr || !identical(*a, *b)) return false;
  }
  return true;
}

bool is_plain_tensor(const Graph& graph, ValueId value) {
  const Type& type = graph.value(value).type;
  return type.is_tensor() && type.tensor().layout.is_empty() && all_constant(type.tensor().dims);
}

}  // namespace

std::optional<NativeFunction> native_function(const Graph& graph, NodeId node) {
  const auto rule = rules().find(graph.op_name(node));
  for (const ValueId operand : graph.node(node).operands) {
    if (!operand || !is_plain_tensor(graph, operand)) return std::nullopt;
  }
  for (const ValueId result : graph.node(node).results) {
    if (!result || !is_plain_tensor(graph, result)) return std::nullopt;
  }
  const NodeReader reader(graph, node);
  Native native = rule == rules().end() ? plain(reader) : rule->second(reader);
  if (!native || native->inputs.empty()) return std::nullopt;
  // Results that Chainer's function lacks must be unused.
  const std::vector<ValueId>& results = graph.node(node).results;
  native->output_count = results.size();
  while (native->output_count > 1 && reader_count(graph, results[native->output_count - 1]) == 0)
    --native->output_count;
  if (!reads_back(graph, node, *native)) return std::nullopt;
  return native;
}

}  // namespace tenon::documents::chainer
