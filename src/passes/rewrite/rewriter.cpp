#include "passes/rewrite/rewriter.h"

#include "base/error.h"
#include "ir/node_rules.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <deque>

namespace tenon::passes::rewrite {
namespace {

constexpr std::size_t kMaxSweeps = 10;
// Bound on the number of rewrites, for rules that undo each other.
constexpr std::size_t kRewritesPerNode = 20;
constexpr std::size_t kSpareRewrites = 1000;

class Rewriter {
 public:
  Rewriter(Graph& graph, const RuleSet& rules, std::string_view pass, Remarks* remarks)
      : graph_(graph), rules_(rules), pass_(pass), remarks_(remarks) {
    for (NodeId id : graph_.nodes_in_order()) {
      for (ValueId operand : graph_.node(id).operands) {
        if (operand) ++uses_.counts[operand];
      }
    }
    limit_ = kRewritesPerNode * graph_.node_count() + kSpareRewrites;
  }

  RewriteOutcome run() {
    for (std::size_t sweep = 0; sweep < kMaxSweeps; ++sweep) {
      const std::size_t before = outcome_.rewrites;
      for (NodeId id : graph_.nodes_in_order()) push_back(id);
      while (!queue_.empty() && outcome_.has_settled) {
        const NodeId id = queue_.front();
        queue_.pop_front();
        is_queued_[id] = false;
        if (!uses_.is_dead[id]) visit(id);
      }
      graph_.erase_dead();
      if (outcome_.rewrites == before || !outcome_.has_settled) break;
    }
    return outcome_;
  }

 private:
  void push_back(NodeId id) {
    if (uses_.is_dead[id] || std::exchange(is_queued_[id], char{true})) return;
    queue_.push_back(id);
  }
  void push_front(NodeId id) {
    if (uses_.is_dead[id] || std::exchange(is_queued_[id], char{true})) return;
    queue_.push_front(id);
  }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.results.empty() || !node.results.front()) return;
    const std::vector<std::size_t>& starting = rules_.starting_at(*node.op);
    if (starting.empty() || has_other_results(node)) return;
    for (std::size_t rule : starting) {
      if (try_rule(rules_.rules()[rule], id)) return;
    }
  }

  // Rules replace a node's first result only.
  bool has_other_results(const Node& node) const {
    return std::any_of(node.results.begin() + 1, node.results.end(),
                       [&](ValueId result) { return is_read(result); });
  }

  bool try_rule(const RuleSet::Compiled& rule, NodeId root) {
    bindings_.assign(rule.names.size(), {});
    const Match match(graph_, uses_, rule.names, root, bindings_, inside_);
    const auto accept = [&] { return !rule.rule.when || rule.rule.when(match); };
    if (!find_match(graph_, rule.pattern, root, bindings_, inside_, accept)) {
      if (!match.refusal().empty()) say(root, rule, "not rewritten", match.refusal());
      return false;
    }
    ValueId made;
    try {
      made = rule.rule.replacement.make ? rule.rule.replacement.make(match)
                                        : build(rule, rule.replacement, match);
      if (made && !may_replace(match.root_value(), made, rule.rule.holds_for_any_type)) {
        match.refuse("the result's type would change");
        made = {};
      }
    } catch (const Error& error) {
      match.refuse(error.summary());
    }
    if (!made) {
      for (NodeId id : match.made()) uses_.is_dead[id] = true;  // they never counted as readers
      if (!match.refusal().empty()) say(root, rule, "not rewritten", match.refusal());
      return false;
    }
    commit(rule, match, made);
    return true;
  }

  ValueId build(const RuleSet::Compiled& rule, const PatternTerm& term, const Match& match) {
    switch (term.kind) {
      case PatternTerm::Kind::Variable:
      case PatternTerm::Kind::Optional:
        return bindings_[term.slot].value;
      case PatternTerm::Kind::Number:
        return match.make_scalar(term.number, match.root_type().tensor().dtype);
      case PatternTerm::Kind::Call:
        break;
      default:
        TENON_ASSERT(false, "a replacement is made of calls, variables and numbers");
    }
    std::vector<ValueId> operands;
    for (const PatternTerm& arg : term.args) {
      if (arg.kind == PatternTerm::Kind::Rest) {
        const std::vector<ValueId>& rest = bindings_[arg.slot].values;
        operands.insert(operands.end(), rest.begin(), rest.end());
      } else {
        operands.push_back(build(rule, arg, match));
      }
    }
    Attributes attrs;
    if (term.other_attrs) attrs = bindings_[*term.other_attrs].attrs;
    for (const AttrTerm& attr : term.attrs) {
      const std::optional<AttrValue>& value =
          attr.literal ? attr.literal : bindings_[attr.slot].attr;
      if (value) attrs.set(attr.name, *value);
    }
    return match.make(term.ops.front()->name, std::move(operands), std::move(attrs));
  }

  bool may_replace(ValueId old, ValueId made, bool holds_for_any_type) const {
    const Type &wanted = graph_.value(old).type, &given = graph_.value(made).type;
    if (!wanted.is_known()) return holds_for_any_type && !given.is_known();
    if (wanted == given) return true;
    // Keeps stated types.
    return graph_.has_stated_type(old) && depends_on_data(given) && types_agree(wanted, given) &&
           graph_.value(made).producer && !graph_.has_stated_type(made);
  }

  void commit(const RuleSet::Compiled& rule, const Match& match, ValueId made) {
    const NodeId root = match.root();
    const ValueId old = match.root_value();
    const std::vector<NodeId> fresh = match.made();
    for (NodeId id : fresh) {
      for (ValueId operand : graph_.node(id).operands) {
        if (operand) ++uses_.counts[operand];
      }
    }
    const NodeId maker = graph_.value(made).producer;
    const bool is_fresh = std::find(fresh.begin(), fresh.end(), maker) != fresh.end();
    if (!is_fresh && graph_.is_output(old) && !may_take_name(made)) {
      if (forward_readers(old, made)) count_rewrite();
      for (NodeId id : fresh) bury_if_unread(id);
      return;
    }
    if (is_fresh && graph_.node(maker).name.empty()) {
      graph_.mutable_node(maker).name = graph_.node(root).name;
    }
    if (graph_.has_stated_type(old)) graph_.set_type(made, graph_.value(old).type);
    uses_.counts[made] += std::exchange(uses_.counts[old], 0U);
    const bool takes_name = is_fresh || graph_.is_output(old);
    const std::vector<NodeId> readers = graph_.readers(old);
    graph_.replace_uses(old, made);
    if (takes_name) graph_.swap_names(old, made);
    if (remarks_) say(maker, rule, "rewritten", "");
    for (NodeId reader : readers) push_back(reader);
    for (auto id = fresh.rbegin(); id != fresh.rend(); ++id) push_front(*id);
    bury(root);
    for (NodeId id : fresh) bury_if_unread(id);
    for (const auto& [before, after] : match.successors()) hand_over_names(before, after);
    count_rewrite();
  }

  void hand_over_names(ValueId before, ValueId after) {
    const NodeId old = graph_.value(before).producer;
    if (!uses_.is_dead[old] || before == after) return;
    graph_.swap_names(before, after);
    graph_.mutable_node(graph_.value(after).producer).name = graph_.node(old).name;
  }

  void count_rewrite() {
    if (++outcome_.rewrites > limit_) outcome_.has_settled = false;
  }

  // Inputs and outputs of the graph keep their own names.
  bool may_take_name(ValueId value) const {
    return graph_.value(value).producer && !graph_.is_output(value);
  }

  // An output that equals an input or another output keeps a node of its own; other readers bypass
  // it. Returns whether anything changed.
  bool forward_readers(ValueId old, ValueId made) {
    bool has_changed = false;
    const std::vector<NodeId> readers = graph_.readers(old);
    for (NodeId reader : readers) {
      if (uses_.is_dead[reader]) continue;
      const std::vector<ValueId> operands = graph_.node(reader).operands;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (operands[k] != old) continue;
        graph_.set_operand(reader, k, made);
        --uses_.counts[old];
        ++uses_.counts[made];
        has_changed = true;
      }
      push_back(reader);
    }
    const NodeId id = graph_.value(old).producer;
    const OpDef& identity = find_op("identity");
    if (graph_.node(id).op == &identity) return has_changed;
    Graph::NewNode copy;
    copy.op = &identity;
    copy.operands = {made};
    copy.name = graph_.node(id).name;
    const NodeId kept = graph_.add_node(std::move(copy), id);
    const ValueId result = graph_.node(kept).results.front();
    ++uses_.counts[made];
    graph_.replace_uses(old, result);
    graph_.swap_names(old, result);
    bury(id);
    return true;
  }

  void push_readers(ValueId value) {
    for (NodeId reader : graph_.readers(value)) push_back(reader);
  }

  void bury_if_unread(NodeId id) {
    if (!has_read_result(id)) bury(id);
  }

  // Marks the node and the producers that only it reads as dead.
  void bury(NodeId first) {
    std::vector<NodeId> gone{first};
    while (!gone.empty()) {
      const NodeId id = gone.back();
      gone.pop_back();
      if (std::exchange(uses_.is_dead[id], char{true})) continue;
      for (ValueId operand : graph_.node(id).operands) {
        if (!operand || uses_.counts[operand] == 0) continue;
        const std::uint32_t left = --uses_.counts[operand];
        if (left > 1 || graph_.is_output(operand)) continue;
        if (left == 1) {
          push_readers_of_few(operand);
          continue;
        }
        const NodeId producer = graph_.value(operand).producer;
        if (producer && !uses_.is_dead[producer] && !has_read_result(producer))
          gone.push_back(producer);
      }
    }
  }

  bool is_read(ValueId value) const {
    return value && (uses_.counts[value] != 0 || graph_.is_output(value));
  }

  // Starts at the result that was read at the last call: the readers of a split disappear in order,
  // and a search from the first result would be quadratic.
  bool has_read_result(NodeId id) {
    const std::vector<ValueId>& results = graph_.node(id).results;
    std::size_t& start = first_read_[id];
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t position = (start + k) % results.size();
      if (!is_read(results[position])) continue;
      start = position;
      return true;
    }
    return false;
  }

  // A value that went from two readers to one may match further rules.
  void push_readers_of_few(ValueId value) {
    constexpr std::size_t few = 16;
    if (graph_.readers(value).size() <= few) push_readers(value);
  }

  void say(NodeId id, const RuleSet::Compiled& rule, std::string_view what, std::string_view why) {
    if (!remarks_ || !id) return;
    std::string text = concat(what, " by '", rule.rule.pattern, "'");
    if (!why.empty()) text += concat(": ", why);
    const std::string& name = graph_.value(graph_.node(id).results.front()).name;
    const std::vector<Remarks::Entry>& said = remarks_->about(name);
    const bool is_known = std::any_of(said.begin(), said.end(), [&](const Remarks::Entry& entry) {
      return entry.pass == pass_ && entry.text == text;
    });
    if (!is_known) remarks_->say(name, pass_, std::move(text));
  }

  Graph& graph_;
  const RuleSet& rules_;
  std::string_view pass_;
  Remarks* remarks_;
  Uses uses_;
  std::deque<NodeId> queue_;
  IdMap<NodeId, char> is_queued_;
  IdMap<NodeId, std::size_t> first_read_;
  std::vector<PatternBinding> bindings_;
  std::vector<NodeId> inside_;
  RewriteOutcome outcome_;
  std::size_t limit_ = 0;
};

}  // namespace

Condition operator&&(Condition a, Condition b) {
  return [a = std::move(a), b = std::move(b)](const Match& match) { return a(match) && b(match); };
}

Condition operator||(Condition a, Condition b) {
  return [a = std::move(a), b = std::move(b)](const Match& match) { return a(match) || b(match); };
}

RuleSet::RuleSet(std::vector<Rule> rules, std::vector<std::string> definitions) {
  Definitions known;
  for (const std::string& definition : definitions) add_definition(known, definition);
  for (Rule& rule : rules) {
    Compiled compiled{std::move(rule), {}, {}, {}};
    compiled.pattern = parse_term(compiled.rule.pattern, known, compiled.names);
    if (!compiled.rule.replacement.make) {
      compiled.replacement = parse_term(compiled.rule.replacement.text, {}, compiled.names);
    }
    index(compiled.pattern, rules_.size());
    rules_.push_back(std::move(compiled));
  }
}

void RuleSet::index(const PatternTerm& pattern, std::size_t rule) {
  if (pattern.kind == PatternTerm::Kind::Choice) {
    for (const PatternTerm& option : pattern.args) index(option, rule);
    return;
  }
  TENON_ASSERT(pattern.kind == PatternTerm::Kind::Call, "a rule's pattern starts with an op");
  for (const OpDef* op : pattern.ops) {
    std::vector<std::size_t>& starting = by_op_[op];
    if (starting.empty() || starting.back() != rule) starting.push_back(rule);
  }
}

const std::vector<std::size_t>& RuleSet::starting_at(const OpDef& op) const {
  static const std::vector<std::size_t> none;
  const auto found = by_op_.find(&op);
  return found == by_op_.end() ? none : found->second;
}

RewriteOutcome apply(Graph& graph, const RuleSet& rules, std::string_view pass,
                     const PassOptions& options) {
  return Rewriter(graph, rules, pass, options.remarks).run();
}

}  // namespace tenon::passes::rewrite
