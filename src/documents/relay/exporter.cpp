#include "documents/relay/exporter.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/native_node.h"
#include "documents/relay/export_node.h"
#include "documents/relay/importer.h"
#include "documents/relay/metadata.h"
#include "documents/relay/plain_calls.h"
#include "documents/relay/types.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace tenon::documents::relay {
namespace {

const ExportRules& rules() {
  static const ExportRules all = [] {
    ExportRules list;
    add_contraction_exports(list);
    add_plain_exports(list);
    add_elementwise_exports(list);
    add_normalization_exports(list);
    add_pooling_exports(list);
    add_selection_exports(list);
    add_shape_exports(list);
    return list;
  }();
  return all;
}

// Replaces characters that a variable's name must not contain.
std::string variable_name(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool is_fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    clean += is_fine ? c : '_';
  }
  return clean;
}

// Returns a name that can be stored in a comment and parsed back.
std::string comment_name(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool ends_comment =
        !clean.empty() && ((clean.back() == '*' && c == '/') || (clean.back() == '/' && c == '*'));
    const bool is_space = static_cast<unsigned char>(c) <= ' ';
    if (is_space && (clean.empty() || clean.back() == ' ')) continue;
    clean += is_space ? ' ' : ends_comment ? '_' : c;
  }
  const std::string_view trimmed = trim(clean);
  if (trimmed.starts_with("ty=") || trimmed.starts_with("span=")) return "_" + std::string(trimmed);
  return std::string(trimmed);
}

// Element types with a literal suffix.
bool is_literal(DType dtype) {
  switch (dtype) {
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::F16:
    case DType::F32:
    case DType::F64:
    case DType::Bool:
      return true;
    default:
      return false;
  }
}

class RelayExporter {
 public:
  RelayExporter(const Graph& graph, const NativeNodes& own) : graph_(graph), native_(own) {}

  RelayModule run(bool with_data) {
    const auto said = [&](std::string_view key) {
      const auto found = graph_.metadata.find(std::string(key));
      return found == graph_.metadata.end() ? std::string() : found->second;
    };
    module_.version = said(kVersionKey);
    RelayExpr function = RelayExpr::of(RelayExpr::Kind::Function, {});
    function.blocks = {module_.add_block()};
    const ExprBuilder build(module_, function.blocks.front());
    Scope scope;
    for (const ValueId input : graph_.inputs()) {
      const ExprId variable =
          build.variable(variable_name(graph_.value(input).name), type_of(graph_, input));
      scope.exprs[input] = variable;
      function.parameters.push_back(variable);
    }
    const ExprId body = export_body(graph_, scope, build);
    throw_unsupported();
    function.parts = {body};
    function.annotation = result_type(graph_);
    if (native_.are_types_stated) {
      Graph signature;
      for (const ValueId input : graph_.inputs())
        signature.add_input(graph_.value(input).name, graph_.value(input).type);
      function.attributes.push_back(
          {std::string(kOwnAttribute), to_attribute(one_line(signature)), 0});
    }
    const std::string name = said(kFunctionKey);
    module_.functions.push_back({name.empty() ? "main" : variable_name(name), said(kIdKey),
                                 module_.add(std::move(function))});
    if (with_data) module_.metadata = make_metadata(constants_);
    return std::move(module_);
  }

 private:
  struct Scope {
    std::unordered_map<ValueId, ExprId> exprs;
  };

  RelayType type_of(const Graph& graph, ValueId value) {
    const Type& type = graph.value(value).type;
    if (!type.is_tensor()) {
      refuse(concat("values of type ", to_string(type)));
      return tensor_type({}, "float32");
    }
    if (dtype_name(type.tensor().dtype).empty())
      refuse(concat("elements of type ", to_string(type.tensor().dtype)));
    return to_relay(type.tensor());
  }

  RelayType result_type(const Graph& graph) {
    std::vector<RelayType> parts;
    for (const ValueId output : graph.outputs()) parts.push_back(type_of(graph, output));
    return RelayType::of_results(std::move(parts));
  }

  void refuse(const std::string& what) { ++refused_[what]; }

  void throw_unsupported() const {
    if (refused_.empty()) return;
    std::vector<std::string> list;
    for (const auto& [what, count] : refused_) list.push_back(concat(what, " (", count, ")"));
    throw Error("Relay has no words for some nodes", ErrorKind::Unsupported).got(join(list, "; "));
  }

  ExprId export_body(const Graph& graph, Scope& scope, const ExprBuilder& build) {
    for (const NodeId id : graph.nodes_in_order()) export_node(graph, id, scope, build);
    std::vector<ExprId> outputs;
    for (const ValueId output : graph.outputs()) outputs.push_back(expr_of(output, scope, build));
    return outputs.size() == 1 ? outputs.front() : build.tuple(outputs);
  }

  // Returns a placeholder for the result of a refused node: all refusals are reported together at
  // the end.
  static ExprId expr_of(ValueId value, const Scope& scope, const ExprBuilder& build) {
    const auto found = scope.exprs.find(value);
    return found == scope.exprs.end() ? build.integer(0) : found->second;
  }

  void export_node(const Graph& graph, NodeId id, Scope& scope, const ExprBuilder& build) {
    const Node& node = graph.node(id);
    if (!node.results.empty() && graph.constant_of(node.results[0])) {
      scope.exprs[node.results[0]] = export_constant(*graph.constant_of(node.results[0]), build);
      return;
    }
    const bool is_own = &graph == &graph_ && native_.contains(id);
    if (node.op->name == "if" && !is_own) return export_if(graph, node, scope, build);
    if (!are_tensors(graph, node))
      return refuse(concat(node.op->name, ": a type is known at run time only"));
    std::vector<ExprId> operands;
    for (const ValueId operand : node.operands)
      operands.push_back(operand ? expr_of(operand, scope, build) : ExprId());
    const std::vector<ExprId> results = apply(graph, id, is_own, operands, build);
    for (std::size_t k = 0; k < node.results.size() && k < results.size(); ++k) {
      if (!node.results[k]) continue;
      scope.exprs[node.results[k]] = results[k];
      state_type(results[k], type_of(graph, node.results[k]));
      RelayExpr& made = module_.at(results[k]);
      const ExprId named = made.kind == RelayExpr::Kind::Projection ? made.parts[0] : results[k];
      if (module_.at(named).kind == RelayExpr::Kind::Call && k == 0)
        module_.at(named).span.name = comment_name(node.name);
    }
  }

  void state_type(ExprId id, const RelayType& type) {
    RelayExpr& expr = module_.at(id);
    if (expr.kind != RelayExpr::Kind::Variable && !expr.type) expr.type = type;
  }

  static bool are_tensors(const Graph& graph, const Node& node) {
    const auto is_tensor = [&](ValueId value) {
      return !value || graph.value(value).type.is_tensor();
    };
    return std::all_of(node.operands.begin(), node.operands.end(), is_tensor) &&
           std::all_of(node.results.begin(), node.results.end(), is_tensor);
  }

  // Exports a node as Relay's operators, as a composite function marked with the op, or as a native
  // call.
  std::vector<ExprId> apply(const Graph& graph, NodeId id, bool is_own,
                            const std::vector<ExprId>& operands, const ExprBuilder& build) {
    const Node& node = graph.node(id);
    const ExportEntry scan{[this](const ExportNode& each) { return unroll_scan(each); }, true};
    const auto found = rules().find(node.op->name);
    const ExportEntry* entry = node.op->name == "scan"  ? &scan
                               : found == rules().end() ? nullptr
                                                        : &found->second;
    const std::size_t expr_count = module_.exprs.size(), block_count = module_.block_count,
                      constant_count = constants_.size();
    const auto take_back = [&] {
      module_.exprs.resize(expr_count);
      module_.block_count = block_count;
      constants_.resize(constant_count);
    };
    if (entry != nullptr && !is_own && !entry->is_composite) {
      try {
        return entry->rule(ExportNode(graph, id, build, operands, false));
      } catch (const NeedsComposite&) {
        take_back();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::Unsupported) throw;
        take_back();
        entry = nullptr;
      }
    }
    if (entry != nullptr && !(is_own && native_.are_types_stated)) {
      try {
        return apply_composite(graph, id, *entry, operands, build);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::Unsupported) throw;
        take_back();
      }
    }
    const NativeNode own = native_node(graph, id);
    return results_of(
        graph, id, build,
        build.call(std::string(kOwnPrefix) + node.op->name, arguments_of(own, node, operands),
                   {{std::string(kOwnAttribute), to_attribute(own.text)}}));
  }

  static std::vector<ExprId> arguments_of(const NativeNode& own, const Node& node,
                                          const std::vector<ExprId>& operands) {
    std::vector<ExprId> arguments;
    for (const ValueId input : own.inputs) {
      const auto position = std::find(node.operands.begin(), node.operands.end(), input);
      arguments.push_back(operands[static_cast<std::size_t>(position - node.operands.begin())]);
    }
    return arguments;
  }

  // Returns the used results of an expression, projected if there are several.
  std::vector<ExprId> results_of(const Graph& graph, NodeId id, const ExprBuilder& build,
                                 ExprId call) {
    const Node& node = graph.node(id);
    std::vector<ExprId> results(node.results.size());
    std::vector<RelayType> types;
    for (const ValueId result : node.results) {
      if (result) types.push_back(type_of(graph, result));
    }
    const bool is_single = types.size() == 1;
    module_.at(call).type = RelayType::of_results(std::move(types));
    std::size_t next = 0;
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (node.results[k]) results[k] = is_single ? call : build.field(call, next++);
    }
    return results;
  }

  // fn (%p0, …, Composite="tenon.op", tenon="…") { the rule's expressions }(operands)
  std::vector<ExprId> apply_composite(const Graph& graph, NodeId id, const ExportEntry& entry,
                                      const std::vector<ExprId>& operands,
                                      const ExprBuilder& build) {
    const Node& node = graph.node(id);
    const NativeNode own = native_node(graph, id);
    RelayExpr function = RelayExpr::of(RelayExpr::Kind::Function, build.block());
    function.blocks = {module_.add_block()};
    const ExprBuilder inside(module_, function.blocks.front());
    std::unordered_map<ValueId, ExprId> parameter_of;
    for (const ValueId input : own.inputs) {
      parameter_of[input] =
          inside.variable(concat("p", parameter_of.size()), type_of(graph, input));
      function.parameters.push_back(parameter_of[input]);
    }
    std::vector<ExprId> parameters;
    for (const ValueId operand : node.operands) {
      const auto known = parameter_of.find(operand);
      parameters.push_back(!operand ? ExprId()
                           : known != parameter_of.end()
                               ? known->second
                               : export_constant(*graph.constant_of(operand), inside));
    }
    std::vector<ExprId> made = entry.rule(ExportNode(graph, id, inside, parameters, true));
    std::vector<ExprId> wanted;
    std::vector<RelayType> types;
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      if (k >= made.size())
        throw Error(concat(node.op->name, ": a result has no words"), ErrorKind::Unsupported);
      wanted.push_back(made[k]);
      types.push_back(type_of(graph, node.results[k]));
    }
    function.parts = {wanted.size() == 1 ? wanted.front() : inside.tuple(wanted)};
    function.annotation = RelayType::of_results(std::move(types));
    function.attributes = {{"Composite", to_attribute(std::string(kOwnPrefix) + node.op->name), 0},
                           {std::string(kOwnAttribute), to_attribute(own.text), 0}};
    const ExprId call =
        build.call(module_.add(std::move(function)), arguments_of(own, node, operands));
    return results_of(graph, id, build, call);
  }

  ExprId export_constant(const Constant& constant, const ExprBuilder& build) {
    const bool is_scalar = constant.shape().empty() && is_literal(constant.dtype());
    RelayExpr expr = RelayExpr::of(is_scalar ? RelayExpr::Kind::Scalar : RelayExpr::Kind::Constant,
                                   build.block());
    expr.type = to_relay(constant.type());
    if (expr.type->dtype.empty()) refuse(concat("elements of type ", to_string(constant.dtype())));
    if (is_scalar) {
      const Tensor scalar = constant.materialise();
      if (constant.dtype() == DType::Bool) {
        expr.literal = to_attribute(scalar.integer_at(0) != 0);
      } else if (is_integer(constant.dtype())) {
        expr.literal.value.emplace<IntegerLiteral>(
            IntegerLiteral{scalar.integer_at(0), expr.type->dtype});
      } else {
        expr.literal.value.emplace<RealLiteral>(RealLiteral{scalar.real_at(0), expr.type->dtype});
      }
    } else {
      expr.index = static_cast<std::int64_t>(constants_.size());
      constants_.push_back(constant);
    }
    return module_.add(std::move(expr));
  }

  // Branches see the enclosing block, so that captured values need no parameters.
  void export_if(const Graph& graph, const Node& node, Scope& scope, const ExprBuilder& build) {
    RelayExpr expr = RelayExpr::of(RelayExpr::Kind::If, build.block());
    expr.parts = {expr_of(node.operands[0], scope, build)};
    std::unordered_set<ExprId> seen;
    for (std::size_t k = 1; k < node.operands.size(); ++k) {
      const ExprId captured = expr_of(node.operands[k], scope, build);
      if (has_line(module_.at(captured).kind) && seen.insert(captured).second)
        expr.captures.push_back(captured);
    }
    for (const Graph& body : node.bodies) {
      Scope inside;
      for (std::size_t k = 0; k < body.inputs().size() && k + 1 < node.operands.size(); ++k) {
        inside.exprs[body.inputs()[k]] = expr_of(node.operands[k + 1], scope, build);
      }
      expr.blocks.push_back(module_.add_block());
      expr.parts.push_back(export_body(body, inside, ExprBuilder(module_, expr.blocks.back())));
    }
    const ExprId made = module_.add(std::move(expr));
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const bool is_only = node.bodies[0].outputs().size() == 1;
      scope.exprs[node.results[k]] = is_only ? made : build.field(made, k);
      state_type(scope.exprs[node.results[k]], type_of(graph, node.results[k]));
    }
  }

  // Exports a body as a separate function.
  ExprId export_function(const Graph& body, const ExprBuilder& around) {
    RelayExpr function = RelayExpr::of(RelayExpr::Kind::Function, around.block());
    function.blocks = {module_.add_block()};
    const ExprBuilder inside(module_, function.blocks.front());
    Scope scope;
    for (const ValueId input : body.inputs()) {
      const ExprId variable =
          inside.variable(variable_name(body.value(input).name), type_of(body, input));
      scope.exprs[input] = variable;
      function.parameters.push_back(variable);
    }
    function.parts = {export_body(body, scope, inside)};
    function.annotation = result_type(body);
    return module_.add(std::move(function));
  }

  // Relay's loops are recursive functions; its frontends unroll recurrent networks, and so does
  // this exporter. The step is a function, from which the importer can restore the loop.
  std::vector<ExprId> unroll_scan(const ExportNode& scan) {
    constexpr std::int64_t most_steps = 4096;
    const ExprBuilder& b = scan.build();
    const auto states = static_cast<std::size_t>(scan.integer("state_count"));
    const auto inputs = static_cast<std::size_t>(scan.integer("input_count"));
    const auto number = [&](const char* attr, std::size_t k) {
      const Integers numbers = scan.integers(attr);
      return k < numbers.size() ? numbers[k] : 0;
    };
    const auto axis_of = [&](const char* attr, std::size_t k, std::size_t rank) {
      const std::int64_t axis = number(attr, k);
      return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    };
    const TensorType& first = scan.type(states);
    const auto axis = static_cast<std::size_t>(axis_of("input_axes", 0, first.rank()));
    const std::int64_t steps = scan.numbers({first.dims[axis]}).front();
    const std::size_t outputs = scan.node().results.size() - states;
    if (steps < 1 || steps > most_steps) throw scan.unsupported(concat(steps, " steps"));
    const ExprId step = export_function(scan.node().bodies.front(), b);
    const bool is_tuple = scan.node().bodies.front().outputs().size() > 1;
    std::vector<ExprId> carried(scan.operands().begin(),
                                scan.operands().begin() + static_cast<std::ptrdiff_t>(states));
    std::vector<std::vector<ExprId>> rows(outputs);
    for (std::int64_t t = 0; t < steps; ++t) {
      std::vector<ExprId> arguments = carried;
      for (std::size_t k = 0; k < inputs; ++k) {
        const std::size_t position = states + k;
        const std::int64_t at = number("input_reverse", k) != 0 ? steps - 1 - t : t;
        const AttributeValue along =
            to_attribute(axis_of("input_axes", k, scan.type(position).rank()));
        arguments.push_back(
            b.call("take", {scan.operands()[position], b.integer(at)}, {{"axis", along}}));
      }
      for (std::size_t k = states + inputs; k < scan.operands().size(); ++k)
        arguments.push_back(scan.operands()[k]);
      const ExprId made = b.call(step, arguments);
      for (std::size_t k = 0; k < states + outputs; ++k) {
        const ExprId result = is_tuple ? b.field(made, k) : made;
        if (k < states) {
          carried[k] = result;
        } else {
          std::vector<ExprId>& row = rows[k - states];
          row.insert(number("output_reverse", k - states) != 0 ? row.begin() : row.end(), result);
        }
      }
    }
    for (std::size_t k = 0; k < outputs; ++k) {
      const std::int64_t along = axis_of("output_axes", k, scan.result_type(states + k).rank());
      carried.push_back(b.call("stack", {b.tuple(rows[k])}, {{"axis", to_attribute(along)}}));
    }
    return carried;
  }

  const Graph& graph_;
  const NativeNodes& native_;
  RelayModule module_;
  std::vector<Constant> constants_;
  std::map<std::string, int> refused_;
};

}  // namespace

RelayModule export_graph(const Graph& graph, const NativeNodes& own) {
  return RelayExporter(graph, own).run(false);
}
RelayModule export_graph_with_data(const Graph& graph, const NativeNodes& own) {
  return RelayExporter(graph, own).run(true);
}

}  // namespace tenon::documents::relay
