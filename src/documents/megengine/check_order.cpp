#include "base/text.h"
#include "documents/megengine/check_parts.h"
#include "documents/megengine/vocabulary.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::documents::megengine {
namespace {

void check_sequence(const CheckContext& context) {
  const auto& operators = context.operators();
  const std::vector<ReadyTask> tasks = tasks_of(context.profile, context.index);
  const ReadyOrder order = ready_order(tasks);
  for (std::size_t k = 0; k < context.index.sequence.size(); ++k) {
    const ItemId should_be = k < order.sequence.size() ? operators[order.sequence[k]].id : -1;
    context.findings.compare(
        "comp_seq: position", [&] { return concat("$.graph_exec.comp_seq[", k, "]"); },
        context.profile.graph_exec.comp_seq[k], should_be);
  }
  // Roots are operators without executed dependents. Several are visited in the order of their
  // numbers.
  std::vector<bool> is_needed(operators.size());
  for (std::size_t k = 0; k < operators.size(); ++k) {
    for (std::uint32_t need : tasks[k].needs) is_needed[need] = true;
  }
  std::vector<std::uint32_t> roots;
  for (std::size_t opr : context.index.sequence) {
    if (!is_needed[opr]) roots.push_back(static_cast<std::uint32_t>(opr));
  }
  std::stable_sort(roots.begin(), roots.end(), [&](std::uint32_t a, std::uint32_t b) {
    return operators[a].extra.dfs_step_num.value_or(0) <
           operators[b].extra.dfs_step_num.value_or(0);
  });
  const std::vector<std::int64_t> numbers = post_order(tasks, roots);
  for (std::size_t opr : context.index.sequence) {
    const Extra& extra = operators[opr].extra;
    const auto place = [&](std::string_view member) {
      return [&operators, opr, member] {
        return concat(operator_path(operators[opr]), ".extra.", member);
      };
    };
    if (extra.input_update_time) {
      context.findings.compare("input_update_time", place("input_update_time"),
                               *extra.input_update_time, order.ready_at[opr]);
    }
    if (extra.dfs_step_num) {
      context.findings.compare("dfs_step_num", place("dfs_step_num"), *extra.dfs_step_num,
                               numbers[opr]);
    }
  }
}

void check_numbers(const CheckContext& context) {
  for (std::size_t opr = 0; opr < context.operators().size(); ++opr) {
    const Operator& node = context.operators()[opr];
    for (std::size_t k = 0; k < node.output.size(); ++k) {
      context.findings.compare(
          "numbers: outputs follow their operator",
          [&] { return concat(operator_path(node), ".output[", k, "]"); }, node.output[k],
          node.id + 1 + static_cast<ItemId>(k));
    }
    // An operator is created after its inputs.
    for (std::size_t k = 0; k < node.input.size(); ++k) {
      context.findings.require(
          node.input[k] < node.id, "numbers: inputs come before",
          [&] { return concat(operator_path(node), ".input[", k, "]"); },
          std::to_string(node.input[k]), concat("less than ", node.id));
    }
  }
}

// An operator runs on the comp nodes of its outputs. It waits for inputs that are produced on other
// comp nodes, and for those only.
void check_waiting(const CheckContext& context) {
  for (std::size_t opr = 0; opr < context.operators().size(); ++opr) {
    const Operator& node = context.operators()[opr];
    if (!context.profile.has(node, "waiting_spec")) continue;
    const bool is_executed = context.index.is_executed(opr);
    context.findings.compare(
        "waiting_spec: of executed operators",
        [&] { return operator_path(node) + ".waiting_spec"; },
        node.waiting_spec ? "object" : "null", is_executed ? "object" : "null");
    if (!node.waiting_spec || node.output.empty()) continue;
    const std::string& own = context.vars()[context.index.outputs[opr][0]].comp_node;
    std::unordered_set<ItemId> awaited;
    const std::unordered_set<ItemId> inputs(node.input.begin(), node.input.end());
    for (const Waiting& waiting : *node.waiting_spec) {
      for (std::size_t k = 0; k < waiting.dev_ready.size(); ++k) {
        const ItemId id = waiting.dev_ready[k];
        awaited.insert(id);
        const auto place = [&] {
          return concat(operator_path(node), ".waiting_spec.", waiting.comp_node, ".dev_ready[", k,
                        "]");
        };
        const bool is_input = inputs.contains(id);
        context.findings.require(
            is_input && context.vars()[context.index.vars.at(id)].comp_node != waiting.comp_node,
            "waiting_spec: vars of other comp nodes", place, std::to_string(id),
            "an input that another comp node makes");
      }
    }
    for (std::size_t k = 0; k < node.input.size(); ++k) {
      const std::size_t var = context.index.inputs[opr][k];
      const VarNode& read = context.vars()[var];
      const bool is_constant = has_flag(read, "PERSISTENT_DEVICE_VALUE");
      context.findings.require(
          is_host_input(node.type, k) || is_constant || read.comp_node == own ||
              awaited.contains(read.id),
          "comp_node: inputs are here or waited for", [&] { return var_path(read) + ".comp_node"; },
          read.comp_node, concat(own, ", or waited for by operator ", node.id));
    }
  }
}

void check_comp_nodes(const CheckContext& context) {
  for (std::size_t opr = 0; opr < context.operators().size(); ++opr) {
    const auto& outputs = context.index.outputs[opr];
    const Operator& node = context.operators()[opr];
    for (std::size_t var : outputs) {
      // All outputs of an operator are on one comp node; except for copies and operators that are
      // not executed, it is that of the first input.
      const VarNode& made = context.vars()[var];
      context.findings.compare(
          "comp_node: one for all outputs", [&] { return var_path(made) + ".comp_node"; },
          made.comp_node, context.vars()[outputs.front()].comp_node);
      if (context.index.is_executed(opr) || context.index.inputs[opr].empty()) continue;
      context.findings.compare(
          "comp_node: that of the input", [&] { return var_path(made) + ".comp_node"; },
          made.comp_node, context.vars()[context.index.inputs[opr].front()].comp_node);
    }
    if (const Measured* device = context.index.device[opr]; device && !outputs.empty()) {
      const std::string& own = context.vars()[outputs.front()].comp_node;
      for (const auto& [comp_node, times] : device->at) {
        context.findings.compare(
            "comp_node: where the device times are from",
            [&] { return concat("$.profiler.device.", node.id, ".", comp_node); }, comp_node, own);
      }
    }
  }
}

}  // namespace

void check_order(const CheckContext& context) {
  check_sequence(context);
  check_numbers(context);
  check_waiting(context);
  check_comp_nodes(context);
}

}  // namespace tenon::documents::megengine
