#include "reference/evaluate.h"

#include "base/error.h"
#include "expr/analysis.h"
#include "expr/lowering.h"
#include "ir/constraint.h"
#include "ir/text.h"
#include "reference/total.h"
#include "reference/wide.h"

#include <new>

namespace tenon::reference {
namespace {

// Values of symbols while a graph runs on given inputs.
class Bindings {
 public:
  // Binds symbols by matching declared and actual extents; throws on a contradiction.
  void bind(const std::string& name, const Type& declared, const Type& real) {
    if (!declared.is_known()) return;
    if (declared.kind() != real.kind()) refuse(name, declared, real);
    if (!declared.is_tensor()) return;
    const TensorType& expected = declared.tensor();
    const TensorType& actual = real.tensor();
    if (expected.dtype != actual.dtype || expected.rank() != actual.rank())
      refuse(name, declared, real);
    for (std::size_t axis = 0; axis < expected.rank(); ++axis) {
      bind_extent(name, axis, expected.dims[axis], actual.dims[axis].constant(), declared, real);
    }
  }

  const DimBindings& values() const { return values_; }
  /// Returns these values, extended by those of `outer`.
  DimBindings joined(const DimBindings& outer) const {
    DimBindings all = values_;
    all.insert(outer.begin(), outer.end());
    return all;
  }

 private:
  void bind_extent(const std::string& name, std::size_t axis, const Dim& declared,
                   std::int64_t actual, const Type& type, const Type& real) {
    const Dim expected = declared.substitute(values_);
    if (expected.is_constant()) {
      if (expected.constant() == actual) return;
      if (declared.is_constant()) refuse(name, type, real);
      throw Error(concat("'", name, "' has the wrong extent along axis ", axis))
          .expected(declared, " = ", expected)
          .got(actual, " in ", real);
    }
    const Range range = declared.range();
    if (actual < range.lo || actual > range.hi) {
      throw Error(concat("'", name, "' is out of range along axis ", axis))
          .expected(declared, " in [", range.lo, ", ", range.hi, "]")
          .got(actual, " in ", real);
    }
    if (const auto symbol = expected.symbol_name()) values_.emplace(*symbol, Dim(actual));
  }

  [[noreturn]] static void refuse(const std::string& name, const Type& declared, const Type& real) {
    throw Error(concat("'", name, "' has the wrong type")).expected(declared).got(real);
  }

  DimBindings values_;
};

// Checks extents against the assumptions of nodes.
void check_constraints(const std::vector<Constraint>& constraints, const DimBindings& symbols) {
  for (const Constraint& constraint : constraints) try {
      const Dim a = constraint.a.substitute(symbols), b = constraint.b.substitute(symbols);
      if (!a.is_constant() || !b.is_constant() || truth_of(constraint.kind, a, b) == Truth::Always)
        continue;
      throw Error(concat(constraint.op, ": the extents of this run do not fit"), ErrorKind::Usage)
          .expected(rule_text(constraint.kind, constraint.a, constraint.b))
          .got(a, " and ", b);
    } catch (Error& error) {  // an extent that is divided by zero has no place
      throw error.at(constraint.where);
    }
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && info(dtype).arithmetic == Arithmetic::F32 && dtype != DType::F32;
}

void widen(Datum& datum) {
  if (datum.is_tensor() && is_narrow_float(datum.tensor().dtype())) {
    datum = Datum(datum.tensor().converted(DType::F32));
  }
}

// Returns the value's type; for values kept wide, the declared type.
Type type_as_declared(const Datum& datum, const Type& declared, const EvaluateOptions& options) {
  Type type = datum.type();
  if (!options.keeps_floats_wide || !type.is_tensor() || !declared.is_tensor()) return type;
  if (is_narrow_float(declared.tensor().dtype) && type.tensor().dtype == DType::F32) {
    type.tensor().dtype = declared.tensor().dtype;
  }
  return type;
}

// `outer` holds the symbols of the surrounding graph, which attributes in a body may use.
std::vector<Datum> run_graph(const Graph& graph, std::vector<Datum> inputs,
                             const DimBindings& outer, const EvaluateOptions& options);

class GraphEvaluation : public Evaluation {
 public:
  GraphEvaluation(const std::vector<Graph>& bodies, const DimBindings& symbols,
                  const EvaluateOptions& options)
      : bodies_(bodies), symbols_(symbols), options_(options) {
    options_.on_value = nullptr;
    options_.on_progress = nullptr;
  }
  std::vector<Datum> run_body(std::size_t body, std::vector<Datum> inputs) override {
    TENON_ASSERT(body < bodies_.size(), "the body exists");
    if (options_.before_body) options_.before_body();
    return run_graph(bodies_[body], std::move(inputs), symbols_, options_);
  }

 private:
  const std::vector<Graph>& bodies_;
  const DimBindings& symbols_;
  EvaluateOptions options_;
};

void refuse_large(const OpDef& op, const std::vector<Type>& types, std::int64_t limit) {
  for (const Type& type : types) {
    if (!type.is_tensor() || !all_constant(type.tensor().dims)) continue;
    if (byte_count(type.tensor()).constant() <= limit) continue;
    throw Error(concat(op.name, ": its result is larger than allowed"))
        .expected("at most ", limit, " bytes")
        .got(type);
  }
}

// Refuses a window or a reduction of more operations than can be counted, like a compiled graph.
void refuse_costly(const OpDef& op, const std::vector<Expr>& exprs, std::int64_t limit) {
  const Dim operations = flops_of(exprs);
  if (limit == 0 || !operations.is_constant() || operations.constant() <= limit) return;
  throw Error(concat(op.name, ": it takes more operations than allowed"))
      .expected("at most ", limit)
      .got(operations);
}

std::vector<Datum> run_op(const OpDef& op, Attributes attrs,
                          const std::vector<std::optional<Datum>>& operands,
                          const std::vector<Layout>& layouts, const std::vector<bool>& wanted,
                          const std::vector<Graph>& bodies, const DimBindings& symbols,
                          const EvaluateOptions& options) {
  std::vector<OperandFacts> facts(operands.size());
  std::vector<bool> present(operands.size());
  std::vector<const Tensor*> tensors(operands.size(), nullptr);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    present[k] = operands[k].has_value();
    if (!present[k]) continue;
    facts[k].type = operands[k]->type();
    if (!operands[k]->is_tensor()) continue;
    tensors[k] = &operands[k]->tensor();
    facts[k].value = tensors[k];
    if (k < layouts.size() && !layouts[k].is_empty()) facts[k].type.tensor().layout = layouts[k];
  }
  attrs = bind_dynamic_attributes(op, std::move(attrs), tensors);
  const InferOutput inferred = op.infer({attrs, facts, present, bodies, wanted.size()});

  if (options.max_result_bytes != 0) refuse_large(op, inferred.types, options.max_result_bytes);

  if (op.evaluate) {
    GraphEvaluation evaluation(bodies, symbols, options);
    evaluation.op = &op;
    evaluation.operands = operands;
    evaluation.wanted = wanted;
    evaluation.results.resize(wanted.size());
    evaluation.result_types = inferred.types;
    evaluation.communicator = options.communicator;
    op.evaluate(attrs, evaluation);
    std::vector<Datum> results;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      TENON_ASSERT(!wanted[k] || evaluation.results[k],
                   concat(op.name, " sets every wanted result"));
      results.push_back(wanted[k] ? std::move(*evaluation.results[k]) : Datum());
    }
    return results;
  }

  std::vector<Type> operand_types, result_types = inferred.types;
  for (const OperandFacts& fact : facts) operand_types.push_back(fact.type);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (!wanted[k]) result_types[k] = Type{};
  }
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (!wanted[k]) continue;
    if (!result_types[k].is_tensor() || !all_constant(result_types[k].tensor().dims)) {
      throw Error(concat(op.name, ": the shape of its result is not known even with its data"))
          .got(result_types[k]);
    }
    byte_count(result_types[k].tensor());  // refuses sizes beyond any memory
  }
  std::vector<Expr> exprs = lower_op(op, attrs, std::move(operand_types), std::move(result_types));
  refuse_costly(op, exprs, options.max_node_operations);
  if (options.default_value) exprs = made_total(exprs, *options.default_value);
  if (options.computes_wide) exprs = computed_wide(exprs);
  std::vector<Tensor> values = evaluate(exprs, tensors, options.thread_count);
  return {std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())};
}

std::vector<Datum> run_node(const Graph& graph, NodeId id,
                            const std::vector<std::optional<Datum>>& operands,
                            const DimBindings& symbols, const EvaluateOptions& options) {
  const Node& node = graph.node(id);
  std::vector<Layout> layouts;
  for (ValueId operand : node.operands) {
    const Type type = operand ? graph.value(operand).type : Type{};
    layouts.push_back(type.is_tensor() ? type.tensor().layout : Layout{});
  }
  std::vector<bool> wanted;
  for (ValueId result : node.results) wanted.push_back(result.is_valid());
  try {
    return run_op(*node.op, substitute(node.attrs, symbols), operands, layouts, wanted, node.bodies,
                  symbols, options);
  } catch (PlacedError& error) {
    error.locate(graph.location(id));
    throw;
  } catch (const std::bad_alloc&) {
    const ValueId result = node.results.front();
    throw Error("no memory to compute a value", ErrorKind::OutOfMemory)
        .at(graph.location(id))
        .got(result ? to_string(graph.value(result).type) : "no result");
  }
}

std::vector<Datum> run_graph(const Graph& graph, std::vector<Datum> inputs,
                             const DimBindings& outer, const EvaluateOptions& options) {
  if (inputs.size() != graph.inputs().size()) {
    throw Error("wrong number of inputs").expected(graph.inputs().size()).got(inputs.size());
  }
  Bindings bindings;
  IdMap<ValueId, std::optional<Datum>> values(graph.value_id_bound());
  IdMap<ValueId, std::size_t> uses_left(graph.value_id_bound(), 0);
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId operand : graph.node(id).operands) {
      if (operand) ++uses_left[operand];
    }
  }
  for (ValueId output : graph.outputs()) ++uses_left[output];
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Value& input = graph.value(graph.inputs()[k]);
    bindings.bind(input.name, input.type, type_as_declared(inputs[k], input.type, options));
    values[graph.inputs()[k]] = std::move(inputs[k]);
  }

  // Assumptions of rewritten nodes; those of other nodes are checked as they run.
  check_constraints(kept_constraints(graph), bindings.values());

  const auto count_run = [&](const std::string& place) {
    if (options.node_runs_left && --*options.node_runs_left < 0)
      throw Error("the graph runs more nodes than allowed").at(place);
  };
  if (graph.node_count() == 0) count_run(concat("graph '", graph.name, "'"));

  std::size_t done = 0;
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    std::vector<std::optional<Datum>> operands;
    for (ValueId operand : node.operands)
      operands.push_back(operand ? values[operand] : std::nullopt);
    count_run(graph.location(id));
    std::vector<Datum> results;
    const bool is_constant = node.results.size() == 1 && graph.constant_of(node.results[0]);
    if (is_constant && options.constants) {
      results.emplace_back(options.constants->get(*graph.constant_of(node.results[0])));
    } else {
      try {
        results = outer.empty() ? run_node(graph, id, operands, bindings.values(), options)
                                : run_node(graph, id, operands, bindings.joined(outer), options);
      } catch (const Error&) {
        // An operator does not know which input defined an extent, but the assumptions name it.
        if (!bindings.values().empty()) check_constraints(constraints_of(graph), bindings.values());
        throw;
      }
    }
    if (options.keeps_floats_wide) {
      for (Datum& result : results) widen(result);
    }
    if (options.disturb) {
      for (Datum& result : results) options.disturb(result, node.operands.empty());
    }
    operands.clear();
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      const Value& value = graph.value(node.results[k]);
      bindings.bind(value.name, value.type, type_as_declared(results[k], value.type, options));
      if (options.on_value) options.on_value(node.results[k], results[k]);
      if (uses_left[node.results[k]] > 0) values[node.results[k]] = std::move(results[k]);
    }
    for (ValueId operand : node.operands) {
      if (operand && --uses_left[operand] == 0) values[operand].reset();
    }
    if (options.on_progress) options.on_progress(++done, graph.node_count());
  }
  std::vector<Datum> outputs;
  for (ValueId output : graph.outputs()) outputs.push_back(*values[output]);
  return outputs;
}

}  // namespace

Tensor ConstantCache::get(const Constant& constant) {
  const Constant::Kind kind = constant.base().kind();
  const bool is_seeded = kind == Constant::Kind::Normal || kind == Constant::Kind::Uniform;
  if (!is_seeded) return constant.materialise();
  const auto [found, is_new] = made_.try_emplace(print(constant));
  if (is_new) found->second = constant.materialise();
  return found->second;
}

std::vector<Datum> evaluate(const Graph& graph, std::vector<Datum> inputs,
                            const EvaluateOptions& options) {
  return run_graph(graph, std::move(inputs), {}, options);
}

std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<bool>& wanted, const std::vector<Graph>& bodies,
                               const EvaluateOptions& options) {
  return run_op(op, attrs, operands, {}, wanted, bodies, {}, options);
}

std::vector<Datum> evaluate_op(const OpDef& op, const Attributes& attrs,
                               const std::vector<std::optional<Datum>>& operands,
                               const std::vector<Layout>& layouts, const std::vector<bool>& wanted,
                               const EvaluateOptions& options) {
  return run_op(op, attrs, operands, layouts, wanted, {}, {}, options);
}

std::vector<Datum> evaluate_node(const Graph& graph, NodeId node,
                                 const std::vector<std::optional<Datum>>& operands,
                                 const DimBindings& symbols, const EvaluateOptions& options) {
  return run_node(graph, node, operands, symbols, options);
}

}  // namespace tenon::reference
