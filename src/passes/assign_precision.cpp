#include "base/error.h"
#include "expr/analysis.h"
#include "expr/names.h"
#include "ops/definition/registry.h"
#include "ops/families/window.h"
#include "passes/definition/pass.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace tenon::passes {
namespace {

/// Precision that a node computes in, and the reason.
enum class NodePrecision : std::uint8_t {
  /// reads and writes no f32 value
  Untouched,
  Wide,
  /// reads and writes the narrow type
  Narrow,
  /// reads the narrow type and writes f32, through its `out_dtype` attribute
  NarrowToWide,
  /// a cast to the narrow type whose operand is already narrow
  Vanishes,
};

bool is_wide(const Graph& graph, ValueId value) {
  if (!value) return false;
  const Type& type = graph.value(value).type;
  return type.is_tensor() && type.tensor().dtype == DType::F32;
}

bool is_plain_step(const ExprNode& node) {
  switch (node.kind) {
    case ExprKind::Operand:
    case ExprKind::Literal:
    case ExprKind::Extent:
    case ExprKind::Index:
    case ExprKind::Select:
    case ExprKind::Cast:
      return true;
    case ExprKind::Unary:
      return node.unary == UnaryOp::Negate || node.unary == UnaryOp::Abs ||
             node.unary == UnaryOp::Not || node.unary == UnaryOp::IsNan;
    case ExprKind::Binary:
      switch (node.binary) {
        case BinaryOp::Add:
        case BinaryOp::Subtract:
        case BinaryOp::Multiply:
        case BinaryOp::Minimum:
        case BinaryOp::Maximum:
        case BinaryOp::And:
        case BinaryOp::Or:
        case BinaryOp::Equal:
        case BinaryOp::Less:
        case BinaryOp::LessEqual:
          return true;
        default:
          return false;
      }
    default:
      return false;
  }
}

// Returns whether the expressions only add, multiply and select elements. With narrow operands
// these lose one rounding of the result; division, roots and exponentials can lose all significant
// bits.
bool is_plain(const std::vector<Expr>& exprs) {
  std::vector<const ExprNode*> open;
  std::unordered_set<const ExprNode*> seen;
  for (const Expr& expr : exprs) open.push_back(&expr.node());
  while (!open.empty()) {
    const ExprNode* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (!is_plain_step(*node)) return false;
    for (const Expr& arg : node->args) open.push_back(&arg.node());
  }
  return !exprs.empty();
}

// Returns the index of the operand that a factor of a product reads, in any order and type; nullopt
// if the factor computes anything in between.
std::optional<std::size_t> factor_operand(const Expr& factor) {
  const ExprNode* node = &factor.node();
  // Zero padding is zero in every type.
  const auto is_zero = [](const Expr& fill) {
    return fill.node().kind == ExprKind::Literal && fill.node().real == 0;
  };
  while (node->kind == ExprKind::Cast || node->kind == ExprKind::Reshape ||
         (node->kind == ExprKind::Read && (!node->has_fill || is_zero(node->args.back())))) {
    node = &node->args[0].node();
  }
  if (node->kind != ExprKind::Operand) return std::nullopt;
  return node->operand;
}

// Returns which operands are multiplied with each other and summed, such as the queries, keys and
// values of attention; empty if no sum is over products of two operands.
std::vector<bool> factors_of(const std::vector<Expr>& exprs, std::size_t operand_count) {
  std::vector<bool> is_factor(operand_count, false);
  bool has_product = false;
  std::vector<const ExprNode*> open;
  std::unordered_set<const ExprNode*> seen;
  for (const Expr& expr : exprs) {
    if (expr.is_defined()) open.push_back(&expr.node());
  }
  while (!open.empty()) {
    const ExprNode* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Expr& arg : node->args) open.push_back(&arg.node());
    if (!is_contraction_expr(*node)) continue;
    const std::vector<Expr>& factors = node->args[0].node().args;
    const auto a = factor_operand(factors[0]), b = factor_operand(factors[1]);
    has_product |= a && b && *a != *b;
    for (const auto& factor : {a, b}) {
      if (factor) is_factor[*factor] = true;
    }
  }
  return has_product ? is_factor : std::vector<bool>();
}

bool has_element_attribute(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(), [](const Attributes::Item& item) {
    return std::holds_alternative<DType>(item.second);
  });
}

template <class T>
T greatest_finite(const Tensor& tensor) {
  T greatest = 0;
  for (const T element : tensor.as<T>()) {
    if (std::isfinite(element)) greatest = std::max(greatest, std::abs(element));
  }
  return greatest;
}

double greatest_of(const Constant& constant) {
  switch (constant.kind()) {
    case Constant::Kind::Normal:
      return std::abs(constant.first()) + 10 * std::abs(constant.second());
    case Constant::Kind::Uniform:
      return std::max(std::abs(constant.first()), std::abs(constant.second()));
    case Constant::Kind::Scaled:
      return greatest_of(constant.base()) * greatest_finite<double>(constant.factors());
    case Constant::Kind::Splat:
    case Constant::Kind::Dense:
      break;
  }
  return greatest_finite<float>(constant.stored());
}

// Keeps seeded weights as seeds.
Constant narrowed(const Constant& constant, DType dtype) {
  switch (constant.kind()) {
    case Constant::Kind::Normal:
      return Constant::normal(dtype, constant.shape(), constant.seed(), constant.first(),
                              constant.second());
    case Constant::Kind::Uniform:
      return Constant::uniform(dtype, constant.shape(), constant.seed(), constant.first(),
                               constant.second());
    case Constant::Kind::Splat:
      return Constant::splat(constant.stored().converted(dtype), constant.shape());
    case Constant::Kind::Scaled:
      // Rounds stored elements once, after the product, instead of before it as well.
      if (constant.base().kind() == Constant::Kind::Dense) break;
      return Constant::scaled(narrowed(constant.base(), dtype), constant.factors());
    case Constant::Kind::Dense:
      break;
  }
  return Constant(constant.materialise().converted(dtype));
}

class Assigner {
 public:
  Assigner(Graph& graph, const PassOptions& options)
      : graph_(graph),
        remarks_(options.remarks),
        narrow_(options.assign_precision_to == "bf16" ? DType::BF16 : DType::F16),
        keeps_tiles_(options.target.keeps_tiles) {
    for (NodeId id : graph.nodes_in_order()) nodes_.push_back(id);
  }

  void run() {
    for (NodeId id : nodes_) choices_[id] = choice_for(id);
    for (auto id = nodes_.rbegin(); id != nodes_.rend(); ++id) narrow_before_readers(*id);
    for (NodeId id : nodes_) widen_result(id);
    for (NodeId id : nodes_) keep_narrow(id);
    for (NodeId id : nodes_) rewrite(id);
    rewrite_outputs();
    for (const auto& [old, made] : constants_) {
      if (graph_.readers(old).empty() && !graph_.is_output(old)) graph_.swap_names(old, made);
    }
    graph_.erase_dead();
  }

 private:
  bool reads_narrow(NodeId id) const {
    return choices_[id] == NodePrecision::Narrow || choices_[id] == NodePrecision::NarrowToWide;
  }
  // A node that computes in f32 with narrow factors leaves its other operands in f32.
  bool reads_narrow(NodeId id, ValueId operand) const {
    if (!reads_narrow(id)) return false;
    const std::vector<bool>& factors = factors_[id];
    if (factors.empty()) return true;
    const std::vector<ValueId>& operands = graph_.node(id).operands;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] == operand && !factors[k]) return false;
    }
    return true;
  }
  // Returns whether the value will have the narrow type.
  bool is_narrow(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return producer && is_wide(graph_, value) && choices_[producer] == NodePrecision::Narrow;
  }
  // Returns the narrow value that a cast to f32 produced this one from.
  ValueId narrow_source(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (!producer || graph_.op_name(producer) != "cast" || !is_wide(graph_, value)) return {};
    const ValueId source = graph_.node(producer).operands[0];
    const Type& type = graph_.value(source).type;
    return type.is_tensor() && type.tensor().dtype == narrow_ ? source : ValueId();
  }

  void say(NodeId id, std::string text) const {
    if (!remarks_) return;
    remarks_->say(graph_.value(graph_.node(id).results[0]).name, "assign-precision",
                  std::move(text));
  }

  bool fits(ValueId value) {
    char& known = fits_[value];
    if (known == 0) {
      const bool is_small = greatest_of(*graph_.constant_of(value)) <= highest_finite(narrow_);
      known = is_small ? 1 : 2;
    }
    return known == 1;
  }

  NodePrecision stay_wide(NodeId id, std::string_view why) const {
    say(id, concat("stays in f32: ", why));
    return NodePrecision::Wide;
  }

  NodePrecision choice_for(NodeId id) {
    const Node& node = graph_.node(id);
    const bool has_wide = std::any_of(node.operands.begin(), node.operands.end(),
                                      [&](ValueId operand) { return is_wide(graph_, operand); });
    if (!has_wide || !node.results[0]) return NodePrecision::Untouched;
    if (!node.bodies.empty()) return stay_wide(id, "its bodies do");
    const auto is_tensor = [&](ValueId value) {
      return !value || graph_.value(value).type.is_tensor();
    };
    if (!std::ranges::all_of(node.operands, is_tensor) ||
        !std::ranges::all_of(node.results, is_tensor)) {
      return stay_wide(id, "a type is not known to be a tensor");
    }
    const AttrValue* to = node.op->name == "cast" ? node.attrs.find("to") : nullptr;
    if (to && std::get<DType>(*to) == narrow_ && is_narrow(node.operands[0])) {
      return NodePrecision::Vanishes;
    }
    const bool is_product =
        node.op->precision == Precision::Integer && fusion_kind(graph_, id) == Fusion::Contraction;
    const bool has_factors = !is_product && narrows_factors(id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      if (has_factors && !factors_[id][k]) continue;  // stays in f32, such as a mask
      if (is_wide(graph_, operand) && graph_.constant_of(operand) && !fits(operand)) {
        return stay_wide(id, concat("constant '", graph_.value(operand).name, "' is too large for ",
                                    to_string(narrow_)));
      }
    }
    if (is_product) return contraction_choice(id);
    return has_factors ? NodePrecision::Narrow : follower_choice(id);
  }

  // Products of narrow numbers are exact in f32, and such a node computes the rest in f32.
  bool narrows_factors(NodeId id) {
    const Node& node = graph_.node(id);
    if (!node.op->lower || has_element_attribute(node)) return false;
    std::vector<bool> factors = factors_of(lowered(graph_, id), node.operands.size());
    if (factors.empty()) return false;
    std::vector<OperandFacts> facts;
    std::vector<bool> present;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      present.push_back(bool(operand));
      facts.push_back({operand ? graph_.value(operand).type : Type()});
      if (!factors[k]) continue;
      if (!operand || !is_wide(graph_, operand)) return false;
      TensorType type = facts.back().type.tensor();
      type.dtype = narrow_;
      facts.back().type = type;
    }
    const InferInput input{node.attrs, facts, present, node.bodies, node.results.size()};
    try {
      const InferOutput output = node.op->infer(input);
      for (std::size_t k = 1; k < node.results.size(); ++k) {
        if (node.results[k]) return false;  // the types of further results are unknown
      }
      const Type& result = output.types.front();
      if (!result.is_tensor() || result.tensor().dtype != narrow_) return false;
    } catch (const Error&) {
      return false;  // the op requires operands of one type
    }
    factors_[id] = std::move(factors);
    return true;
  }

  NodePrecision contraction_choice(NodeId id) const {
    const Node& node = graph_.node(id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (node.operands[k] && !is_wide(graph_, node.operands[k])) {
        return stay_wide(id, "its operands have several types");
      }
    }
    if (!is_wide(graph_, node.results[0])) return stay_wide(id, "its result has another type");
    return has_element_attribute(node) ? NodePrecision::NarrowToWide : NodePrecision::Narrow;
  }

  // Narrows data movement and elementwise arithmetic if the operands are narrow.
  NodePrecision follower_choice(NodeId id) const {
    const Node& node = graph_.node(id);
    bool has_narrow = false;
    for (ValueId operand : node.operands) {
      if (!is_wide(graph_, operand) || graph_.constant_of(operand)) continue;
      if (!is_narrow(operand)) {
        return stay_wide(id, concat("'", graph_.value(operand).name, "' comes in f32"));
      }
      has_narrow = true;
    }
    if (!has_narrow) return stay_wide(id, "it reads constants only");
    if (node.op->is_random || has_element_attribute(node)) {
      return stay_wide(id, "it gives a type of its own");
    }
    const bool moves = node.op->precision == Precision::MovesOnly;
    if (moves ||
        (fusion_kind(graph_, id) == Fusion::Elementwise && is_plain(lowered(graph_, id)))) {
      return NodePrecision::Narrow;
    }
    return stay_wide(id, concat(node.op->name, " needs it"));
  }

  // Makes a value narrow if at least one reader reads it narrow: kernels that read memory at full
  // bandwidth would pay for a second copy in f32, and the other readers widen as they load.
  void keep_narrow(NodeId id) {
    if (keeps_tiles_ || choices_[id] != NodePrecision::Wide) return;
    for (ValueId result : graph_.node(id).results) {
      if (!result || !is_wide(graph_, result) || graph_.constant_of(result) ||
          graph_.is_output(result))
        continue;
      const auto wants = [&](NodeId reader) { return reads_narrow(reader, result); };
      const std::vector<NodeId>& readers = graph_.readers(result);
      if (std::ranges::none_of(readers, wants) || std::ranges::all_of(readers, wants)) continue;
      kept_narrow_.insert(result);
      say(id, concat("its result is kept in ", to_string(narrow_), " alone"));
    }
  }

  bool is_read_narrow_only(ValueId value) const {
    const std::vector<NodeId>& readers = graph_.readers(value);
    return !readers.empty() && !graph_.is_output(value) &&
           std::ranges::all_of(readers, [&](NodeId reader) { return reads_narrow(reader, value); });
  }

  // Moving narrow elements and narrowing moved elements give the same result; the former moves half
  // the bytes.
  void narrow_before_readers(NodeId id) {
    const Node& node = graph_.node(id);
    if (choices_[id] != NodePrecision::Wide || node.op->precision != Precision::MovesOnly) return;
    if (node.results.size() != 1 || !is_wide(graph_, node.results[0])) return;
    if (has_element_attribute(node) || fusion_kind(graph_, id) != Fusion::Reshuffle) return;
    for (ValueId operand : node.operands) {
      if (is_wide(graph_, operand) && graph_.constant_of(operand) && !fits(operand)) return;
    }
    if (!is_read_narrow_only(node.results[0])) return;
    choices_[id] = NodePrecision::Narrow;
  }

  // A contraction whose readers all read f32 writes its f32 accumulators without narrowing.
  void widen_result(NodeId id) {
    const Node& node = graph_.node(id);
    if (choices_[id] != NodePrecision::Narrow || node.op->precision != Precision::Integer) return;
    // Library convolutions write the type that they read.
    if (!keeps_tiles_ && takes_windows(*node.op)) return;
    const AttrDef* asked = node.op->find_attr("out_dtype");
    if (!asked || asked->kind != AttrKind::Element) return;
    const std::vector<NodeId>& readers = graph_.readers(node.results[0]);
    const auto is_one = [&](NodeId reader) {
      return reads_narrow(reader, node.results[0]) || choices_[reader] == NodePrecision::Vanishes;
    };
    if (std::ranges::none_of(readers, is_one)) choices_[id] = NodePrecision::NarrowToWide;
  }

  ValueId cast_after(ValueId value, DType to) {
    const NodeId producer = graph_.value(value).producer;
    const NodeId before = producer ? graph_.next(producer) : graph_.first();
    Graph::NewNode node;
    node.op = &find_op("cast");
    node.operands = {value};
    node.attrs.set("to", to);
    node.results = {graph_.free_name(concat(graph_.value(value).name, "_", to_string(to)))};
    return graph_.node(graph_.add_node(std::move(node), before)).results[0];
  }

  ValueId narrow_constant(ValueId value) {
    Graph::NewNode node;
    node.op = &find_op("constant");
    node.attrs.set("value", narrowed(*graph_.constant_of(value), narrow_));
    node.results = {graph_.free_name(concat(graph_.value(value).name, "_", to_string(narrow_)))};
    const ValueId made =
        graph_.node(graph_.add_node(std::move(node), graph_.value(value).producer)).results[0];
    if (graph_.has_stated_type(value)) {
      TensorType type = graph_.value(value).type.tensor();
      type.dtype = narrow_;
      graph_.set_type(made, type);
    }
    constants_.emplace_back(value, made);
    return made;
  }

  // Runs after the preceding nodes have been rewritten, so that types say which values are narrow.
  ValueId in_narrow(ValueId value) {
    if (graph_.value(value).type.tensor().dtype == narrow_) return value;
    ValueId& made = narrow_of_[value];
    if (!made) {
      const ValueId source = narrow_source(value);
      made = source                      ? source
             : graph_.constant_of(value) ? narrow_constant(value)
                                         : cast_after(value, narrow_);
    }
    return made;
  }
  ValueId in_wide(ValueId value) {
    ValueId& made = wide_of_[value];
    if (!made) made = cast_after(value, DType::F32);
    return made;
  }

  void rewrite(NodeId id) {
    if (choices_[id] == NodePrecision::Vanishes) {
      const ValueId value = graph_.node(id).operands[0], result = graph_.node(id).results[0];
      // Readers skip the cast. An output keeps it as an identity cast.
      if (!graph_.is_output(result)) stands_for_[result] = value;
      return;
    }
    if (choices_[id] == NodePrecision::NarrowToWide && !has_element_attribute(graph_.node(id))) {
      graph_.set_attribute(id, "out_dtype", DType::F32);
    }
    const std::size_t count = graph_.node(id).operands.size();
    for (std::size_t k = 0; k < count; ++k) {
      const ValueId operand = graph_.node(id).operands[k];
      const ValueId wanted = operand_for(id, operand);
      if (wanted != operand) graph_.set_operand(id, k, wanted);
    }
    if (!reads_narrow(id)) return;
    std::vector<ValueId> wide;
    // types that were set explicitly, with a layout for example
    std::vector<std::pair<ValueId, TensorType>> stated;
    for (ValueId result : graph_.node(id).results) {
      if (!is_wide(graph_, result)) continue;
      wide.push_back(result);
      if (graph_.has_stated_type(result))
        stated.emplace_back(result, graph_.value(result).type.tensor());
    }
    graph_.infer(id);
    for (auto& [result, type] : stated) {
      type.dtype = graph_.value(result).type.tensor().dtype;
      graph_.set_type(result, type);
    }
    for (ValueId result : wide) {
      if (!is_wide(graph_, result)) became_narrow_.insert(result);
    }
    say(id, concat("computes in ", to_string(narrow_)));
  }

  ValueId operand_for(NodeId id, ValueId operand) {
    if (!operand) return operand;
    if (const ValueId value = stands_for_[operand]) return value;
    if (reads_narrow(id, operand)) return is_wide(graph_, operand) ? in_narrow(operand) : operand;
    if (kept_narrow_.contains(operand)) return in_wide(in_narrow(operand));
    return became_narrow_.contains(operand) ? in_wide(operand) : operand;
  }

  void rewrite_outputs() {
    std::vector<ValueId> outputs = graph_.outputs();
    for (ValueId& output : outputs) {
      if (!became_narrow_.contains(output)) continue;
      const ValueId wide = in_wide(output);
      if (std::ranges::find(outputs, wide) == outputs.end()) {
        graph_.swap_names(output, wide);
        const std::string name = concat(graph_.value(wide).name, "_", to_string(narrow_));
        graph_.rename(output, graph_.free_name(name));
      }
      output = wide;
    }
    graph_.set_outputs(std::move(outputs));
  }

  Graph& graph_;
  Remarks* remarks_;
  DType narrow_;
  bool keeps_tiles_;
  std::vector<NodeId> nodes_;
  IdMap<NodeId, NodePrecision> choices_;
  IdMap<NodeId, std::vector<bool>> factors_;  // by operand; empty if all operands are narrow
  IdMap<ValueId, char> fits_;                 // constants only: 1 or 2 once computed
  IdMap<ValueId, ValueId> narrow_of_, wide_of_, stands_for_;
  std::vector<std::pair<ValueId, ValueId>> constants_;
  std::unordered_set<ValueId> became_narrow_, kept_narrow_;
};

}  // namespace

/// Mixed precision: computes convolutions and matrix products in a narrow floating type (f16 or
/// bf16), together with the data movement and elementwise arithmetic on their values. All other
/// nodes stay in f32, with one cast per value at each border. Inputs and outputs keep their types.
Graph assign_precision(Graph graph, const PassOptions& options) {
  Assigner(graph, options).run();
  return graph;
}

}  // namespace tenon::passes
