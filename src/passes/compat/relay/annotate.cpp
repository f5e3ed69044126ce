#include "base/error.h"
#include "base/text.h"
#include "ops/definition/registry.h"
#include "passes/compat/relay/forward_rewrite.h"
#include "passes/compat/relay/stages.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::passes::relay_quantize {
namespace {

using Results = std::optional<std::vector<Rewritten>>;

// Note on a temporary, a quantized value or one computed from quantized values: its kind.
struct Note {
  QuantizerKind kind = QuantizerKind::Identity;
};

class Annotator {
 public:
  Annotator(const Graph& graph, const Config& config) : graph_(graph), config_(config) {
    const auto rule = [this](auto member) {
      return [this, member](ForwardRewriter& rewriter, const RewrittenNode& node) -> Results {
        if (!is_enabled(node)) return forward_bare(rewriter, node);
        return (this->*member)(rewriter, node);
      };
    };
    rules_.by_op = {{"conv", rule(&Annotator::convolution)},
                    {"matmul", rule(&Annotator::matrix_product)},
                    {"mul", rule(&Annotator::multiply)},
                    {"add", rule(&Annotator::add)},
                    {"max_pool", rule(&Annotator::max_pool)},
                    {"average_pool", rule(&Annotator::average_pool)},
                    {"cast_hint", rule(&Annotator::cast_hint)},
                    {"concat", rule(&Annotator::concat_parts)}};
    for (const char* op : {"relu", "clip", "reshape", "slice", "transpose", "squeeze", "unsqueeze",
                           "identity", "stop_fusion"})
      rules_.by_op[op] = rule(&Annotator::keep_kind);
    rules_.realize = [](ForwardRewriter&, const Temporary& held) { return held.value; };
    rules_.on_several_readers = [this](ForwardRewriter& rewriter, Rewritten item) {
      if (!item.is_temporary()) return item;
      return temporary(rewriter, attach(rewriter, item, QuantizerKind::Input),
                       QuantizerKind::Input);
    };
  }

  Graph run() {
    Graph made = ForwardRewriter(graph_, rules_).run();
    name_parameters(made);
    return made;
  }

 private:
  // Returns Relay's name of the op, as in `debug_enabled_ops`.
  static std::string relay_word(const RewrittenNode& node) {
    static const std::map<std::string, std::string, std::less<>> words = {
        {"conv", "nn.conv2d"},      {"mul", "multiply"},
        {"relu", "nn.relu"},        {"max_pool", "nn.max_pool2d"},
        {"slice", "strided_slice"}, {"cast_hint", "annotation.cast_hint"},
        {"concat", "concatenate"},  {"stop_fusion", "annotation.stop_fusion"}};
    const std::string op(node.graph.op_name(node.id));
    if (op == "average_pool")
      return is_global_average(node.graph, node.id) ? "nn.global_avg_pool2d" : "nn.avg_pool2d";
    if (op == "matmul") return is_dense(node) ? "nn.dense" : "nn.batch_matmul";
    const auto found = words.find(op);
    return found == words.end() ? op : found->second;
  }
  static bool is_dense(const RewrittenNode& node) {
    const ValueId right = node.graph.node(node.id).operands[1];
    return node.graph.constant_of(right) && node.graph.value(right).type.tensor().rank() == 2;
  }
  bool is_enabled(const RewrittenNode& node) const {
    return !config_.debug_enabled_ops ||
           std::ranges::find(*config_.debug_enabled_ops, relay_word(node)) !=
               config_.debug_enabled_ops->end();
  }
  Results forward_bare(ForwardRewriter& rewriter, const RewrittenNode& node) const {
    std::vector<ValueId> values;
    for (const Rewritten& operand : node.operands) values.push_back(operand.value);
    return plain(rewriter.forward(node.id, values));
  }

  static Results plain(const std::vector<ValueId>& values) {
    std::vector<Rewritten> results;
    for (const ValueId value : values) results.push_back({value, {}});
    return results;
  }
  static Rewritten temporary(ForwardRewriter& rewriter, ValueId value, QuantizerKind kind) {
    return rewriter.make_temporary(value, Note{kind});
  }
  Results annotated(ForwardRewriter& rewriter, const RewrittenNode& node,
                    const std::vector<ValueId>& operands, QuantizerKind kind) const {
    std::vector<Rewritten> results;
    for (const ValueId value : rewriter.forward(node.id, operands))
      results.push_back(value ? temporary(rewriter, value, kind) : Rewritten{});
    return results;
  }
  static std::optional<QuantizerKind> kind_of_item(const ForwardRewriter& rewriter,
                                                   const Rewritten& item) {
    if (!item.is_temporary()) return std::nullopt;
    return std::any_cast<const Note&>(rewriter.temporary(item.temporary).note).kind;
  }
  static bool is_constant(ForwardRewriter& rewriter, const Rewritten& item) {
    return rewriter.graph().constant_of(item.value) != nullptr;
  }
  static QuantizerKind kind_for(ForwardRewriter& rewriter, const Rewritten& item) {
    return is_constant(rewriter, item) ? QuantizerKind::Weight : QuantizerKind::Input;
  }

  // Two readers of a value share its quantizer of one kind. The scale inputs are placeholders.
  ValueId attach(ForwardRewriter& rewriter, const Rewritten& item, QuantizerKind kind) {
    Graph& made = rewriter.graph();
    const ValueId value = item.value;
    const NodeId maker = made.value(value).producer;
    if (maker && made.op_name(maker) == "simulated_quantize" && kind_of(made, maker) == kind)
      return value;
    const auto known = attached_.find({value, kind});
    if (known != attached_.end()) return known->second;
    std::vector<ValueId> operands{value};
    for (int k = 0; k < 3; ++k)
      operands.push_back(rewriter.constant(Constant(Tensor::scalar(DType::F32, 1))));
    const ValueId quantized =
        rewriter.call("simulated_quantize", operands, {{"kind", std::string(name_of(kind))}},
                      made.value(value).name + "_simulated");
    attached_[{value, kind}] = quantized;
    return quantized;
  }

  // Values after a global pool, and convolutions skipped by the configuration, stay floats.
  bool skips_convolution() {
    const std::int64_t number = convolutions_++;
    return is_stopped_ ||
           (config_.skip_conv_layers && std::ranges::find(*config_.skip_conv_layers, number) !=
                                            config_.skip_conv_layers->end());
  }

  ValueId data_of(ForwardRewriter& rewriter, const Rewritten& item) {
    const auto kind = kind_of_item(rewriter, item);
    return kind && *kind != QuantizerKind::Activation
               ? item.value
               : attach(rewriter, item, QuantizerKind::Input);
  }

  Results product(ForwardRewriter& rewriter, const RewrittenNode& node) {
    if (node.operands[1].is_temporary()) {
      throw Error("quantize: a product's weight is a value that is quantized itself",
                  ErrorKind::Unsupported)
          .at(node.graph.location(node.id))
          .expected("a weight that no quantized node made");
    }
    const ValueId data = data_of(rewriter, node.operands[0]);
    const ValueId weight = attach(rewriter, node.operands[1], QuantizerKind::Weight);
    return annotated(rewriter, node, {data, weight}, QuantizerKind::Activation);
  }

  Results convolution(ForwardRewriter& rewriter, const RewrittenNode& node) {
    if (skips_convolution()) return std::nullopt;
    // Calibration reads the elements of the weight.
    if (!is_constant(rewriter, node.operands[1]) || !is_f32(node)) return std::nullopt;
    if (node.operands.size() > 2 && node.operands[2].value) return std::nullopt;
    return product(rewriter, node);
  }

  static bool is_f32(const RewrittenNode& node) {
    const Type& type = node.graph.value(node.graph.node(node.id).operands[0]).type;
    return type.is_tensor() && type.tensor().dtype == DType::F32;
  }

  Results matrix_product(ForwardRewriter& rewriter, const RewrittenNode& node) {
    if (is_stopped_ || !is_f32(node)) return std::nullopt;
    if (is_dense(node)) {
      return config_.skip_dense_layer ? std::nullopt : product(rewriter, node);
    }
    std::vector<ValueId> operands;
    for (const Rewritten& item : node.operands) {
      const auto kind = kind_of_item(rewriter, item);
      const bool is_fine = kind && *kind != QuantizerKind::Activation;
      operands.push_back(is_fine ? item.value : attach(rewriter, item, kind_for(rewriter, item)));
    }
    return annotated(rewriter, node, operands, QuantizerKind::Activation);
  }

  Results multiply(ForwardRewriter& rewriter, const RewrittenNode& node) {
    if (is_stopped_) return std::nullopt;
    const Rewritten &left = node.operands[0], &right = node.operands[1];
    const auto left_kind = kind_of_item(rewriter, left), right_kind = kind_of_item(rewriter, right);
    if (!left_kind && !right_kind) return std::nullopt;
    if (left_kind && right_kind) {
      throw Error("quantize: no rule for a product of two quantized values", ErrorKind::Unsupported)
          .at(node.graph.location(node.id))
          .hint("--set debug_enabled_ops=... without multiply leaves products as floats");
    }
    const auto quantized = [&](const Rewritten& item, std::optional<QuantizerKind> kind) {
      if (!kind) return attach(rewriter, item, kind_for(rewriter, item));
      return *kind == QuantizerKind::Activation ? attach(rewriter, item, QuantizerKind::Input)
                                                : item.value;
    };
    const ValueId a = quantized(left, left_kind), b = quantized(right, right_kind);
    return annotated(rewriter, node, {a, b}, QuantizerKind::Activation);
  }

  // The sum of two 8-bit values has nine bits and is therefore not an 8-bit value; `legacy_add`
  // treats it as one.
  Results add(ForwardRewriter& rewriter, const RewrittenNode& node) {
    if (is_stopped_) return std::nullopt;
    const Rewritten &left = node.operands[0], &right = node.operands[1];
    const auto left_kind = kind_of_item(rewriter, left), right_kind = kind_of_item(rewriter, right);
    if (!left_kind && !right_kind) return std::nullopt;
    const QuantizerKind of_inputs =
        config_.legacy_add ? QuantizerKind::Input : QuantizerKind::Activation;
    if (!left_kind) {
      const ValueId a = attach(rewriter, left, QuantizerKind::Input);
      return annotated(rewriter, node, {a, right.value}, of_inputs);
    }
    if (!right_kind) {
      const ValueId b = attach(rewriter, right, kind_for(rewriter, right));
      return annotated(rewriter, node, {left.value, b}, QuantizerKind::Activation);
    }
    if (*left_kind == QuantizerKind::Input && *right_kind == QuantizerKind::Input)
      return annotated(rewriter, node, {left.value, right.value}, of_inputs);
    const bool are_sums =
        *left_kind == QuantizerKind::Activation && *right_kind == QuantizerKind::Activation;
    const ValueId b = are_sums ? attach(rewriter, right, QuantizerKind::Input) : right.value;
    return annotated(rewriter, node, {left.value, b}, QuantizerKind::Activation);
  }

  Results keep_kind(ForwardRewriter& rewriter, const RewrittenNode& node) {
    const auto kind = kind_of_item(rewriter, node.operands[0]);
    if (is_stopped_ || !kind) return std::nullopt;
    return annotated(rewriter, node, with_first(node, node.operands[0].value), *kind);
  }
  static std::vector<ValueId> with_first(const RewrittenNode& node, ValueId first) {
    std::vector<ValueId> values{first};
    for (std::size_t k = 1; k < node.operands.size(); ++k) values.push_back(node.operands[k].value);
    return values;
  }

  Results max_pool(ForwardRewriter& rewriter, const RewrittenNode& node) {
    const auto kind = kind_of_item(rewriter, node.operands[0]);
    if (is_stopped_ || !kind) return std::nullopt;
    const ValueId x = *kind == QuantizerKind::Activation
                          ? attach(rewriter, node.operands[0], QuantizerKind::Input)
                          : node.operands[0].value;
    return annotated(rewriter, node, with_first(node, x), QuantizerKind::Input);
  }

  Results average_pool(ForwardRewriter& rewriter, const RewrittenNode& node) {
    if (!is_global_average(node.graph, node.id)) return keep_kind(rewriter, node);
    if (is_stopped_ || !node.operands[0].is_temporary()) return std::nullopt;
    is_stopped_ = true;
    return plain(rewriter.forward(node.id, {node.operands[0].value}));
  }

  Results cast_hint(ForwardRewriter& rewriter, const RewrittenNode& node) {
    const auto kind = kind_of_item(rewriter, node.operands[0]);
    if (is_stopped_ || !kind) return std::vector<Rewritten>{{node.operands[0].value, {}}};
    const ValueId x = *kind == QuantizerKind::Activation
                          ? attach(rewriter, node.operands[0], QuantizerKind::Input)
                          : node.operands[0].value;
    return annotated(rewriter, node, {x}, QuantizerKind::Input);
  }

  Results concat_parts(ForwardRewriter& rewriter, const RewrittenNode& node) {
    const auto is_known = [&](const Rewritten& item) { return item.is_temporary(); };
    if (is_stopped_ || std::ranges::none_of(node.operands, is_known)) return std::nullopt;
    std::vector<ValueId> parts;
    for (const Rewritten& item : node.operands)
      parts.push_back(item.is_temporary() ? item.value
                                          : attach(rewriter, item, QuantizerKind::Activation));
    return annotated(rewriter, node, parts, QuantizerKind::Activation);
  }

  // Turns the placeholders into inputs, in traversal order.
  static void name_parameters(Graph& made) {
    std::size_t count = 0;
    const TensorType scalar{DType::F32, {}, {}};
    for (const NodeId id : quantizers(made)) {
      const std::string ending = count++ == 0 ? "" : std::to_string(count - 1);
      std::size_t position = 1;
      for (const char* name : {"dom_scale", "clip_min", "clip_max"}) {
        const ValueId input = made.add_input(made.free_name(name + ending), Type(scalar));
        made.set_operand(id, position++, input);
      }
    }
    made.erase_dead();
  }

  const Graph& graph_;
  const Config& config_;
  ForwardRules rules_;
  std::map<std::pair<ValueId, QuantizerKind>, ValueId> attached_;
  std::int64_t convolutions_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

std::vector<NodeId> quantizers(const Graph& graph) {
  std::vector<NodeId> found;
  std::set<NodeId> seen;
  std::vector<std::pair<NodeId, bool>> stack;
  const auto push = [&](ValueId value) {
    const NodeId producer = value ? graph.value(value).producer : NodeId();
    if (producer && !seen.contains(producer)) stack.emplace_back(producer, false);
  };
  const std::vector<ValueId>& outputs = graph.outputs();
  for (auto output = outputs.rbegin(); output != outputs.rend(); ++output) push(*output);
  while (!stack.empty()) {
    auto& [id, is_open] = stack.back();
    const NodeId node = id;
    if (seen.contains(node)) {
      stack.pop_back();
    } else if (is_open) {
      seen.insert(node);
      stack.pop_back();
      if (graph.op_name(node) == "simulated_quantize") found.push_back(node);
    } else {
      is_open = true;
      const std::vector<ValueId>& operands = graph.node(node).operands;
      for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand) push(*operand);
    }
  }
  return found;
}

QuantizerKind kind_of(const Graph& graph, NodeId quantizer) {
  const AttrValue* word = graph.node(quantizer).attrs.find("kind");
  if (word == nullptr) return QuantizerKind::Identity;
  for (const QuantizerKind kind :
       {QuantizerKind::Input, QuantizerKind::Weight, QuantizerKind::Activation}) {
    if (std::get<std::string>(*word) == name_of(kind)) return kind;
  }
  return QuantizerKind::Identity;
}

Graph annotate(const Graph& graph, const Config& config) { return Annotator(graph, config).run(); }

}  // namespace tenon::passes::relay_quantize
