#include "passes/compat/relay/forward_rewrite.h"

#include "base/error.h"
#include "ops/definition/registry.h"

namespace tenon::passes {

ForwardRewriter::ForwardRewriter(const Graph& graph, const ForwardRules& rules)
    : source_(graph), rules_(rules), result_(graph.name) {
  result_.metadata = graph.metadata;
  result_.states = graph.states;
}

Graph ForwardRewriter::run() {
  for (const ValueId input : source_.inputs()) {
    const Value& value = source_.value(input);
    if (const auto bound = rules_.bind_input ? rules_.bind_input(source_, input) : std::nullopt) {
      rewritten_[input] = {constant(*bound, value.name), {}};
      continue;
    }
    rewritten_[input] = {result_.add_input(value.name, value.type), {}};
  }
  for (const ValueId output : source_.outputs()) visit(output);
  for (const ValueId output : source_.outputs()) {
    const Rewritten item = rewritten_.at(output);
    const bool stays_open = item.is_temporary() && !rules_.realize_outputs;
    const ValueId value = stays_open ? temporary(item.temporary).value : realize_shared(item);
    name_output(source_.value(output).name, value);
    result_.add_output(value);
  }
  result_.erase_dead();
  return std::move(result_);
}

// Gives the new output the name that users know it by.
void ForwardRewriter::name_output(const std::string& name, ValueId value) {
  const ValueId named = result_.find(name);
  const bool may_rename = result_.value(value).producer.is_valid() && !result_.is_output(value);
  if (!named || named == value || !may_rename) return;
  if (!result_.value(named).producer || result_.is_output(named)) return;
  result_.rename(named, result_.free_name(name + "_inside"));
  result_.rename(value, name);
}

// Iterative depth-first walk, for graphs of any depth: operands are popped from left to right,
// before the node that reads them.
void ForwardRewriter::visit(ValueId root) {
  struct Entry {
    ValueId value;
    bool is_open;
  };
  std::vector<Entry> stack{{root, false}};
  while (!stack.empty()) {
    Entry& top = stack.back();
    const ValueId value = top.value;
    const NodeId producer = source_.value(value).producer;
    if (rewritten_.contains(value)) {
      stack.pop_back();
    } else if (top.is_open) {
      stack.pop_back();
      rewrite(producer);
    } else {
      top.is_open = true;
      const std::vector<ValueId>& operands = source_.node(producer).operands;
      for (auto operand = operands.rbegin(); operand != operands.rend(); ++operand) {
        if (*operand && !rewritten_.contains(*operand)) stack.push_back({*operand, false});
      }
    }
  }
}

Rewritten ForwardRewriter::operand_of(ValueId value) {
  if (!value) return {};
  const Rewritten item = rewritten_.at(value);
  if (!rules_.on_several_readers) return item;
  const std::size_t uses = source_.readers(value).size() + (source_.is_output(value) ? 1 : 0);
  return uses > 1 ? rules_.on_several_readers(*this, item) : item;
}

void ForwardRewriter::rewrite(NodeId id) {
  const Node& node = source_.node(id);
  std::vector<Rewritten> operands;
  for (const ValueId operand : node.operands) operands.push_back(operand_of(operand));
  const auto rule = rules_.by_op.find(node.op->name);
  if (rule != rules_.by_op.end()) {
    const std::any context = rules_.context ? rules_.context(source_, id) : std::any();
    if (const auto results = rule->second(*this, {source_, id, operands, context})) {
      TENON_ASSERT(results->size() == node.results.size(),
                   "a rule gives something for each result");
      for (std::size_t k = 0; k < results->size(); ++k) {
        if (node.results[k]) rewritten_[node.results[k]] = (*results)[k];
      }
      return;
    }
  }
  copy_plainly(id, operands);
}

void ForwardRewriter::copy_plainly(NodeId id, const std::vector<Rewritten>& operands) {
  std::vector<ValueId> values;
  for (const Rewritten& operand : operands) {
    values.push_back(operand.is_temporary() || operand.value ? realize_shared(operand) : ValueId());
  }
  const std::vector<ValueId> made = forward(id, values);
  const Node& node = source_.node(id);
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (node.results[k]) rewritten_[node.results[k]] = {made[k], {}};
  }
}

Rewritten ForwardRewriter::make_temporary(ValueId value, std::any note) {
  temporaries_.push_back({value, std::move(note)});
  return {value, TemporaryId(temporaries_.size() - 1)};
}

ValueId ForwardRewriter::realize(Rewritten item) {
  if (!item.is_temporary()) return item.value;
  const Temporary held = temporary(item.temporary);
  return rules_.realize(*this, held);
}

ValueId ForwardRewriter::realize_shared(Rewritten item) {
  if (!item.is_temporary()) return item.value;
  const auto known = realizations_.find(item.temporary);
  if (known != realizations_.end()) return known->second;
  const ValueId value = realize(item);
  realizations_[item.temporary] = value;
  return value;
}

std::vector<ValueId> ForwardRewriter::forward(NodeId original,
                                              const std::vector<ValueId>& operands) {
  const Node& node = source_.node(original);
  Graph::NewNode copy;
  copy.op = node.op;
  copy.operands = operands;
  copy.attrs = node.attrs;
  copy.bodies = node.bodies;
  copy.name = node.name;
  for (const ValueId result : node.results) {
    copy.results.push_back(result ? result_.free_name(source_.value(result).name) : "_");
  }
  const NodeId made = result_.add_node(std::move(copy));
  const std::vector<ValueId> results = result_.node(made).results;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (node.results[k] && source_.has_stated_type(node.results[k])) {
      result_.set_type(results[k], source_.value(node.results[k]).type);
    }
  }
  return results;
}

ValueId ForwardRewriter::constant(Constant value, std::string_view name) {
  return call("constant", {}, {{"value", std::move(value)}}, name);
}

ValueId ForwardRewriter::call(std::string_view op, const std::vector<ValueId>& operands,
                              Attributes attrs, std::string_view name) {
  Graph::NewNode node;
  node.op = &find_op(op);
  node.operands = operands;
  node.attrs = std::move(attrs);
  node.results = {name.empty() ? "" : result_.free_name(name)};
  return result_.node(result_.add_node(std::move(node))).results.front();
}

}  // namespace tenon::passes
