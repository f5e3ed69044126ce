#include "diagnose/find_fault.h"

#include "base/error.h"
#include "diagnose/logical_order.h"
#include "diagnose/visit.h"
#include "driver/compile.h"
#include "expr/fused_groups.h"
#include "reference/evaluate.h"

#include <map>
#include <set>

namespace tenon::diagnose {
namespace {

struct StopSearch {};  // ends a run

NodeId maker_of(const Graph& graph, const std::string& value) {
  const ValueId id = graph.find(value);
  return id ? graph.value(id).producer : NodeId();
}

class FaultFinder {
 public:
  FaultFinder(const Graph& graph, const std::vector<Datum>& inputs, const FaultSearch& options)
      : graph_(graph), inputs_(inputs), options_(options) {}

  std::optional<FoundFault> run() {
    Graph made = driver::run_passes(graph_, options_.passes, {});
    std::optional<CompiledModel> model;
    if (options_.is_compiled)
      model.emplace(codegen::compile(made, driver::cpu_options()).program, options_.threads);
    const auto visit = [&](const OnValue& on_value) {
      try {
        if (model) {
          visit_compiled(*model, made, inputs_, on_value);
        } else {
          visit_reference(made, inputs_, options_.threads, on_value);
        }
      } catch (const StopSearch&) {
      }
    };
    std::optional<FoundFault> found;
    visit([&](const std::string& name, const Tensor& value) {
      const auto fault = fault_in(value, options_.rule);
      if (!fault) return;
      found.emplace();
      found->value = name;
      found->what = fault->what;
      throw StopSearch();
    });
    if (!found) return std::nullopt;
    const NodeId node = maker_of(made, found->value);
    if (!node) {
      found->at_input = found->value;
      return found;
    }
    found->op = made.op_name(node);
    collect_inputs(made, node, visit, *found);
    if (is_fused_group(made, node)) look_inside(made, node, *found);
    find_pass(*found);
    return found;
  }

 private:
  // Collects the node's operands in a second run, because the first one may have overwritten them.
  template <class Visit>
  void collect_inputs(const Graph& made, NodeId node, const Visit& visit, FoundFault& found) const {
    std::map<std::string, Tensor> wanted;
    for (const ValueId operand : made.node(node).operands) {
      if (!operand) continue;
      if (const Constant* constant = made.constant_of(operand)) {
        const Type& type = made.value(operand).type;
        wanted.insert_or_assign(
            made.value(operand).name,
            in_logical_order(constant->materialise(),
                             type.is_tensor() ? type.tensor().layout : Layout()));
      } else {
        wanted.try_emplace(made.value(operand).name);
      }
    }
    visit([&](const std::string& name, const Tensor& value) {
      if (name == found.value) throw StopSearch();
      if (const auto place = wanted.find(name); place != wanted.end()) place->second = value;
    });
    std::set<std::string> described;
    for (const ValueId operand : made.node(node).operands) {
      if (!operand || !described.insert(made.value(operand).name).second) continue;
      found.inputs.emplace_back(made.value(operand).name, wanted.at(made.value(operand).name));
    }
  }

  // Finds the member of a group whose result is the first to violate the rule in the reference.
  void look_inside(const Graph& made, NodeId node, FoundFault& found) const {
    const Graph& body = made.node(node).bodies.front();
    std::vector<Datum> inputs;
    // A body reads the graph's layouts, but the collected values are in plain order, so the graph
    // is run again.
    std::map<std::string, Datum> values;
    reference::EvaluateOptions options;
    options.thread_count = options_.threads;
    options.on_value = [&](ValueId id, const Datum& value) { values[made.value(id).name] = value; };
    for (std::size_t k = 0; k < made.inputs().size(); ++k)
      values[made.value(made.inputs()[k]).name] = inputs_[k];
    try {
      reference::evaluate(made, inputs_, options);
    } catch (const Error&) {
      return;
    }
    for (const ValueId operand : made.node(node).operands) {
      if (!operand || !values.contains(made.value(operand).name)) return;
      inputs.push_back(values[made.value(operand).name]);
    }
    reference::EvaluateOptions inner;
    inner.thread_count = options_.threads;
    inner.on_value = [&](ValueId id, const Datum& value) {
      if (!found.inside.empty() || !value.is_tensor() || body.constant_of(id) != nullptr) return;
      if (!fault_in(value.tensor(), options_.rule)) return;
      const NodeId member = body.value(id).producer;
      if (member) found.inside = concat(body.value(id).name, " (", body.op_name(member), ")");
    };
    try {
      reference::evaluate(body, std::move(inputs), inner);
    } catch (const Error&) {
      return;
    }
  }

  bool has_fault(const Graph& graph) const {
    try {
      visit_reference(graph, inputs_, options_.threads,
                      [&](const std::string&, const Tensor& value) {
                        if (fault_in(value, options_.rule)) throw StopSearch();
                      });
    } catch (const StopSearch&) {
      return true;
    }
    return false;
  }

  // Finds the first pass after which the graph violates the rule in the reference.
  void find_pass(FoundFault& found) const {
    if (has_fault(graph_)) return;
    Graph graph = graph_;
    for (const passes::Pass& pass : options_.passes) {
      graph = driver::run_passes(std::move(graph), std::span(&pass, 1), {});
      if (!has_fault(graph)) continue;
      found.pass = pass.name;
      return;
    }
    found.pass = "code generation";
  }

  const Graph& graph_;
  const std::vector<Datum>& inputs_;
  const FaultSearch& options_;
};

}  // namespace

std::optional<FoundFault> find_fault(const Graph& graph, const std::vector<Datum>& inputs,
                                     const FaultSearch& search) {
  return FaultFinder(graph, inputs, search).run();
}

}  // namespace tenon::diagnose
