#include "frontends/chainer/writer.h"
#include "ops/differentiate.h"

#include <algorithm>
#include <map>

namespace tenon::chainer {
namespace {

bool is_float_tensor(const Type& type) { return type.is_tensor() && is_float(type.tensor().dtype); }

}  // namespace

// The node alone, with its gradient behind it: what the gradient still reads once the rest is gone.
Retained retained_by_gradient(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Builder build;
  std::vector<Var> operands, sources;
  std::map<ValueId, Var> vars;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const ValueId operand = node.operands[k];
    if (!operand) {
      operands.emplace_back();
      continue;
    }
    if (!vars.contains(operand)) {
      vars[operand] = is_written_inline(graph, id, k)
                          ? build.constant(*graph.constant_of(operand))
                          : build.input(concat("x", k), graph.value(operand).type);
      if (!is_written_inline(graph, id, k) && is_float_tensor(graph.value(operand).type)) {
        sources.push_back(vars[operand]);
      }
    }
    operands.push_back(vars[operand]);
  }
  std::vector<std::string> names;
  for (const ValueId result : node.results) names.emplace_back(result ? "" : "_");
  const std::vector<Var> results =
      build.call_all(node.op->name, operands, node.attrs, names, node.bodies);
  Graph& scratch = build.graph();
  const NodeId forward = scratch.last();

  std::vector<ValueId> gradients;
  for (std::size_t k = 0; k < results.size() && !sources.empty(); ++k) {
    if (!results[k].is_valid() || !is_float_tensor(build.type(results[k]))) continue;
    // An upstream gradient of the result's own type, layout and all.
    const Type type = build.type(results[k]);
    const Var loss = results[k] * build.input(concat("upstream", k), type);
    for (const Var gradient : differentiate(build, loss, sources))
      gradients.emplace_back(gradient.id());
  }
  // A gradient that is a value of the forward node itself is read too.
  const std::vector<ValueId> outputs = gradients;
  scratch.set_outputs(std::move(gradients));
  scratch.erase_dead();
  const auto is_kept = [&](Var value) {
    if (!value.is_valid()) return false;
    const ValueId id_of(value.id());
    if (std::find(outputs.begin(), outputs.end(), id_of) != outputs.end()) return true;
    const std::vector<NodeId>& readers = scratch.readers(id_of);
    return std::any_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return reader != forward; });
  };
  Retained retained;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (is_kept(operands[k])) retained.inputs.push_back(static_cast<std::int64_t>(k));
  }
  for (std::size_t k = 0; k < results.size() && scratch.is_live(forward); ++k) {
    if (is_kept(results[k])) retained.outputs.push_back(static_cast<std::int64_t>(k));
  }
  return retained;
}

}  // namespace tenon::chainer
