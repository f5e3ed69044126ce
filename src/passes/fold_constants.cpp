#include "base/error.h"
#include "expr/fused_groups.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"
#include "passes/dynamic_attributes.h"
#include "reference/evaluate.h"

#include <algorithm>

namespace tenon::passes {
namespace {

bool reads_only_constants(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.operands.empty() || node.op->is_random || !node.bodies.empty()) return false;
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ValueId operand) { return !operand || graph.constant_of(operand); });
}

// A result of unknown type may have any size.
bool has_small_results(const Graph& graph, NodeId id, std::int64_t limit) {
  for (ValueId result : graph.node(id).results) {
    if (!result) continue;
    const Type& type = graph.value(result).type;
    if (!type.is_tensor() || !all_constant(type.tensor().dims)) return false;
    if (byte_count(type.tensor()).constant() > limit) return false;
  }
  return true;
}

void replace_by_constants(Graph& graph, NodeId id, const std::vector<Tensor>& values,
                          Reinference& types) {
  const std::vector<ValueId> results = graph.node(id).results;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k]) continue;
    Graph::NewNode constant;
    constant.op = &find_op("constant");
    constant.attrs.set("value", Constant(values[k]));
    const NodeId made = graph.add_node(std::move(constant), id);
    const ValueId value = graph.node(made).results.front();
    // A constant has no layout of its own and takes that of the value it replaces.
    Type type = graph.value(value).type;
    const Type& was = graph.value(results[k]).type;
    if (was.is_tensor() && !was.tensor().layout.is_empty()) {
      type.tensor().layout = was.tensor().layout;
      graph.set_type(value, type);
    }
    graph.replace_uses(results[k], value);
    graph.swap_names(results[k], value);
    types.mark_readers(value);
  }
  graph.erase(id);
}

// Returns elements that are extents of static shapes, or computed from such extents.
std::optional<Tensor> known_numbers(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.results.size() != 1 || !node.results[0] || node.operands.empty()) return {};
  const Dims* known = graph.known_elements(node.results[0]);
  const Type& type = graph.value(node.results[0]).type;
  if (!known || !all_constant(*known) || !type.is_tensor()) return {};
  const Dims& dims = type.tensor().dims;
  if (!all_constant(dims) || !(product(dims) == Dim(static_cast<std::int64_t>(known->size()))))
    return {};
  return Tensor::of(type.tensor().dtype, constants(dims), constants(*known));
}

std::vector<Tensor> evaluated(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<std::optional<Datum>> operands;
  for (ValueId operand : node.operands) {
    operands.push_back(operand ? std::optional<Datum>(graph.constant_of(operand)->materialise())
                               : std::nullopt);
  }
  std::vector<Tensor> tensors;
  for (const Datum& value : reference::evaluate_node(graph, id, operands)) {
    tensors.push_back(value.is_tensor() ? value.tensor() : Tensor());
  }
  return tensors;
}

// Returns whether the branch can be inlined without renaming an output: each output needs a
// producer of its own, so the branch must not forward a value or return one twice.
bool may_inline(const Graph& graph, const Node& node, const Graph& branch) {
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if (!node.results[k] || !graph.is_output(node.results[k])) continue;
    const std::vector<ValueId>& given = branch.outputs();
    if (!branch.value(given[k]).producer || std::count(given.begin(), given.end(), given[k]) > 1) {
      return false;
    }
  }
  return true;
}

// Replaces an `if` of constant condition by the branch taken.
bool inline_branch(Graph& graph, NodeId id, Reinference& types) {
  const Node& node = graph.node(id);
  if (node.op != &find_op("if")) return false;
  const Constant* condition = graph.constant_of(node.operands.front());
  if (!condition || condition->size() != 1) return false;
  const bool is_met = condition->materialise().integer_at(0) != 0;
  const Graph branch = node.bodies[is_met ? 0 : 1];
  if (!may_inline(graph, node, branch)) return false;
  const std::vector<ValueId> captured(node.operands.begin() + 1, node.operands.end());
  for (ValueId result : node.results) {
    // one branch may have more precise types than both together
    if (result) types.mark_readers(result);
  }
  inline_body(graph, id, branch, captured);
  return true;
}

// Returns the size of a node's result if the node only moves elements and the size is static.
std::optional<std::int64_t> moved_bytes(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op->precision != Precision::MovesOnly || node.results.size() != 1) return {};
  const Type& type = graph.value(node.results.front()).type;
  if (!type.is_tensor() || !byte_count(type.tensor()).is_constant()) return {};
  return byte_count(type.tensor()).constant();
}

// Returns the total size of the results of all readers of a constant if each of them can be folded,
// so that the constant itself becomes dead.
std::optional<std::int64_t> bytes_in_place_of(const Graph& graph, ValueId constant) {
  if (graph.is_output(constant)) return {};
  std::int64_t bytes = 0;
  for (const NodeId reader : graph.readers(constant)) {
    const std::optional<std::int64_t> moved = moved_bytes(graph, reader);
    if (!moved || !reads_only_constants(graph, reader)) return {};
    bytes += *moved;
  }
  return bytes;
}

// Returns whether folding the node needs no additional memory: it moves or selects elements of a
// constant that has no other reader. Seeded weights would first have to be stored, and do not
// qualify.
bool takes_no_more_bytes(const Graph& graph, NodeId id) {
  const std::optional<std::int64_t> made = moved_bytes(graph, id);
  if (!made) return false;
  std::int64_t freed = 0;
  for (ValueId operand : graph.node(id).operands) {
    const Constant* constant = operand ? graph.constant_of(operand) : nullptr;
    if (constant == nullptr || constant->kind() != Constant::Kind::Dense) continue;
    const std::int64_t bytes = byte_count(constant->type()).constant();
    const std::optional<std::int64_t> taken = bytes_in_place_of(graph, operand);
    // Each of several slices of one constant frees its own share of the bytes.
    if (taken && *taken <= bytes) freed += graph.readers(operand).size() == 1 ? bytes : *made;
  }
  return *made <= freed;
}

// Returns whether folding would keep two large constants: the result, and an operand that has other
// readers.
bool keeps_both(const Graph& graph, NodeId id) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 17;
  const Node& node = graph.node(id);
  if (node.op->precision == Precision::MovesOnly) return false;
  for (const ValueId operand : node.operands) {
    const Constant* constant = operand ? graph.constant_of(operand) : nullptr;
    if (constant == nullptr || graph.readers(operand).size() < 2) continue;
    if (byte_count(constant->type()).constant() >= kLarge && !has_small_results(graph, id, kLarge))
      return true;
  }
  return false;
}

bool fold_node(Graph& graph, NodeId id, const PassOptions& options, Reinference& types) {
  if (const std::optional<Tensor> numbers = known_numbers(graph, id)) {
    replace_by_constants(graph, id, {*numbers}, types);
    return true;
  }
  if (!reads_only_constants(graph, id)) return false;
  const auto say = [&](std::string text) {
    if (!options.remarks) return;
    options.remarks->say(graph.value(graph.node(id).results.front()).name, "fold-constants",
                         std::move(text));
  };
  if (!has_small_results(graph, id, options.max_constant_bytes) &&
      !takes_no_more_bytes(graph, id)) {
    say("not folded: the result exceeds the size limit of constants, or its size is unknown");
    return false;
  }
  if (keeps_both(graph, id)) {
    say("not folded: its operands have other readers, so both would be stored");
    return false;
  }
  try {
    replace_by_constants(graph, id, evaluated(graph, id), types);
    return true;
  } catch (const Error& error) {
    say(concat("not folded: ", error.summary()));  // the node may never run
    return false;
  }
}

}  // namespace

/// Constant folding: replaces every node that reads only constants, or only static extents, by the
/// constant that it computes. A result larger than `max_constant_bytes` stays a node, because
/// folded broadcasts would bloat the program, unless it replaces constants of at least that size,
/// alone or together with the other slices of the same constant. A large result also stays a node
/// if its constant has other readers. Dynamic attributes become numbers or symbols, and types that
/// become known that way are folded in the same walk; an `if` becomes the branch taken.
Graph fold_constants(Graph graph, const PassOptions& options) {
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;  // unless a branch was inlined, whose nodes are new
    Reinference types(graph);
    for (NodeId id : graph.nodes_in_order()) {
      types.refresh(id);
      resolve_dynamic_attributes(graph, id, types);
      if (fold_node(graph, id, options, types)) continue;
      if (inline_branch(graph, id, types)) {
        is_settled = false;
      } else if (!graph.node(id).bodies.empty() && !is_fused_group(graph, id)) {
        for (Graph& body : graph.mutable_node(id).bodies) {
          body = fold_constants(std::move(body), options);
        }
      }
    }
  }
  graph.erase_dead();
  return graph;
}

}  // namespace tenon::passes
