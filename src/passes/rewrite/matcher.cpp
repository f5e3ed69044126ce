// Backtracking pattern matcher: solves goals (this term, that value) one by one; at a term with
// alternatives it tries the remaining goals with each.
#include "base/error.h"
#include "ir/graph.h"
#include "passes/rewrite/match.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::rewrite {
namespace {

// Longer chains than patterns have factors are not expanded.
constexpr std::size_t kMaxChain = 5;
constexpr std::int64_t kMaxUniformElements = 1 << 16;

// Constants are rounded to their element type, and often computed in it.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-12;
    case DType::F32:
      return 1e-6;
    case DType::F16:
      return 2e-3;
    default:
      return 1e-2;
  }
}

class Matcher {
 public:
  Matcher(const Graph& graph, std::vector<PatternBinding>& bindings, std::vector<NodeId>& inside,
          const std::function<bool()>& accept)
      : graph_(graph), bindings_(bindings), inside_(inside), accept_(accept) {}

  bool run(const PatternTerm& pattern, NodeId root) {
    const std::vector<ValueId>& results = graph_.node(root).results;
    if (results.empty() || !results.front()) return false;
    goals_.push_back({&pattern, results.front()});
    return solve(0);
  }

 private:
  struct Goal {
    const PatternTerm* term;
    /// invalid if the operand is missing
    ValueId value;
  };

  // Solves the goals from `next` on.
  bool solve(std::size_t next) {
    if (next == goals_.size()) return accept_();
    const Goal goal = goals_[next];
    switch (goal.term->kind) {
      case PatternTerm::Kind::Any:
        return goal.value.is_valid() && solve(next + 1);
      case PatternTerm::Kind::Missing:
        return !goal.value && solve(next + 1);
      case PatternTerm::Kind::Variable:
        return goal.value && with_value(goal.term->slot, goal.value, next + 1);
      case PatternTerm::Kind::Optional:
        return with_value(goal.term->slot, goal.value, next + 1);
      case PatternTerm::Kind::Rest:
        return false;  // handled where operands are assigned
      case PatternTerm::Kind::Number:
      case PatternTerm::Kind::NearNumber:
        return is_number(goal) && solve(next + 1);
      case PatternTerm::Kind::NumberVariable:
        return with_number(goal, next + 1);
      case PatternTerm::Kind::Choice:
        return std::any_of(goal.term->args.begin(), goal.term->args.end(),
                           [&](const PatternTerm& term) {
                             return with_goals({{&term, goal.value}}, next + 1);
                           });
      case PatternTerm::Kind::Call:
        return call(goal, next + 1);
    }
    return false;
  }

  // Inserts further goals before the remaining ones and solves them.
  bool with_goals(std::vector<Goal> more, std::size_t next) {
    const std::vector<Goal> kept(goals_.begin() + static_cast<std::ptrdiff_t>(next), goals_.end());
    goals_.resize(next);
    goals_.insert(goals_.end(), more.begin(), more.end());
    goals_.insert(goals_.end(), kept.begin(), kept.end());
    const bool is_solved = solve(next);
    goals_.resize(next);
    goals_.insert(goals_.end(), kept.begin(), kept.end());
    return is_solved;
  }

  bool is_same(ValueId a, ValueId b) const {
    if (a == b) return true;
    if (!a || !b) return false;
    const Constant *x = graph_.constant_of(a), *y = graph_.constant_of(b);
    return x && y && identical(*x, *y);
  }

  bool with_value(std::size_t slot, ValueId value, std::size_t next) {
    PatternBinding& binding = bindings_[slot];
    if (binding.is_bound) return is_same(binding.value, value) && solve(next);
    binding.is_bound = true;
    binding.value = value;
    if (solve(next)) return true;
    bindings_[slot] = {};
    return false;
  }

  bool is_number(const Goal& goal) const {
    if (!goal.value) return false;
    const std::optional<double> value = uniform_value(graph_, goal.value);
    if (!value) return false;
    const double wanted = goal.term->number;
    if (goal.term->kind == PatternTerm::Kind::Number) {
      return *value == wanted && std::signbit(*value) == std::signbit(wanted);
    }
    const DType dtype = graph_.value(goal.value).type.tensor().dtype;
    return std::abs(*value - wanted) <= rounding_of(dtype) * std::abs(wanted);
  }

  bool with_number(const Goal& goal, std::size_t next) {
    const std::optional<double> value =
        goal.value ? uniform_value(graph_, goal.value) : std::nullopt;
    if (!value) return false;
    PatternBinding& binding = bindings_[goal.term->slot];
    if (binding.is_bound) return binding.number == *value && solve(next);
    binding.is_bound = true;
    binding.number = *value;
    binding.value = goal.value;
    if (solve(next)) return true;
    bindings_[goal.term->slot] = {};
    return false;
  }

  bool call(const Goal& goal, std::size_t next) {
    const PatternTerm& term = *goal.term;
    if (!goal.value) return false;
    const NodeId id = graph_.value(goal.value).producer;
    if (id && is_call(term, id, goal.value) && call_node(term, id, goal.value, next)) return true;
    return term.is_optional && with_goals({{&term.args.front(), goal.value}}, next);
  }

  bool is_call(const PatternTerm& term, NodeId id, ValueId value) const {
    const Node& node = graph_.node(id);
    return node.results.front() == value &&
           std::find(term.ops.begin(), term.ops.end(), node.op) != term.ops.end();
  }

  bool call_node(const PatternTerm& term, NodeId id, ValueId value, std::size_t next) {
    std::vector<std::size_t> bound;
    const std::size_t depth = inside_.size();
    inside_.push_back(id);
    const bool is_solved = bind_label(term, value, bound) && bind_attributes(term, id, bound) &&
                           (term.is_chain ? chain(term, id, next) : operands(term, id, next));
    if (is_solved) return true;
    inside_.resize(depth);
    for (std::size_t slot : bound) bindings_[slot] = {};
    return false;
  }

  bool bind_label(const PatternTerm& term, ValueId value, std::vector<std::size_t>& bound) {
    if (!term.label) return true;
    PatternBinding& binding = bindings_[*term.label];
    if (binding.is_bound) return binding.value == value;
    binding.is_bound = true;
    binding.value = value;
    bound.push_back(*term.label);
    return true;
  }

  static std::optional<AttrValue> attribute_of(const Node& node, const std::string& name) {
    if (const AttrValue* set = node.attrs.find(name)) return *set;
    return node.op->find_attr(name)->default_value;
  }

  bool bind_attributes(const PatternTerm& term, NodeId id, std::vector<std::size_t>& bound) {
    const Node& node = graph_.node(id);
    if (!term.has_other_attrs) {
      for (const auto& [name, value] : node.attrs) {
        if (!find_attr(term, name)) return false;
      }
    }
    for (const AttrTerm& attr : term.attrs) {
      const std::optional<AttrValue> value = attribute_of(node, attr.name);
      if (attr.literal) {
        if (!value || !equal(*value, *attr.literal)) return false;
        continue;
      }
      PatternBinding& binding = bindings_[attr.slot];
      if (binding.is_bound) {
        if (binding.attr.has_value() != value.has_value()) return false;
        if (value && !equal(*value, *binding.attr)) return false;
        continue;
      }
      binding.is_bound = true;
      binding.attr = value;
      bound.push_back(attr.slot);
    }
    if (!term.other_attrs) return true;
    PatternBinding& others = bindings_[*term.other_attrs];
    others.is_bound = true;
    bound.push_back(*term.other_attrs);
    for (const auto& [name, value] : node.attrs) {
      if (!find_attr(term, name)) others.attrs.set(name, value);
    }
    return true;
  }

  static const AttrTerm* find_attr(const PatternTerm& term, const std::string& name) {
    for (const AttrTerm& attr : term.attrs) {
      if (attr.name == name) return &attr;
    }
    return nullptr;
  }

  bool operands(const PatternTerm& term, NodeId id, std::size_t next) {
    const std::vector<ValueId>& operands = graph_.node(id).operands;
    if (!term.args.empty() && term.args.back().kind == PatternTerm::Kind::Rest) {
      return with_rest(term, operands, next);
    }
    if (operands.size() > term.args.size()) return false;
    std::vector<ValueId> given = operands;
    given.resize(term.args.size());
    if (in_this_order(term, given, next)) return true;
    if (given.size() != 2 || !commutes(*graph_.node(id).op)) return false;
    std::swap(given[0], given[1]);
    return in_this_order(term, given, next);
  }

  bool in_this_order(const PatternTerm& term, const std::vector<ValueId>& parts, std::size_t next) {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (!may_fit(term.args[k], parts[k])) return false;
    }
    std::vector<Goal> goals;
    for (std::size_t k = 0; k < parts.size(); ++k) goals.push_back({&term.args[k], parts[k]});
    return with_goals(std::move(goals), next);
  }

  // Compares the op alone, which refuses most mismatches.
  bool may_fit(const PatternTerm& term, ValueId value) const {
    switch (term.kind) {
      case PatternTerm::Kind::Number:
      case PatternTerm::Kind::NearNumber:
      case PatternTerm::Kind::NumberVariable:
        return value && graph_.constant_of(value);
      case PatternTerm::Kind::Call: {
        if (term.is_optional) return may_fit(term.args.front(), value) || is_made_by(term, value);
        return is_made_by(term, value);
      }
      case PatternTerm::Kind::Choice:
        return std::any_of(term.args.begin(), term.args.end(),
                           [&](const PatternTerm& option) { return may_fit(option, value); });
      default:
        return true;
    }
  }

  bool is_made_by(const PatternTerm& term, ValueId value) const {
    const NodeId id = value ? graph_.value(value).producer : NodeId{};
    return id && std::find(term.ops.begin(), term.ops.end(), graph_.node(id).op) != term.ops.end();
  }

  bool with_rest(const PatternTerm& term, const std::vector<ValueId>& operands, std::size_t next) {
    const std::size_t fixed = term.args.size() - 1;
    if (operands.size() < fixed) return false;
    PatternBinding& binding = bindings_[term.args.back().slot];
    if (binding.is_bound) return false;
    binding.is_bound = true;
    binding.values.assign(operands.begin() + static_cast<std::ptrdiff_t>(fixed), operands.end());
    std::vector<Goal> goals;
    for (std::size_t k = 0; k < fixed; ++k) goals.push_back({&term.args[k], operands[k]});
    if (with_goals(std::move(goals), next)) return true;
    bindings_[term.args.back().slot] = {};
    return false;
  }

  // Expands the operands of nested nodes of one op into the pattern's number of operands, in every
  // way and every order.
  bool chain(const PatternTerm& term, NodeId id, std::size_t next) {
    return take_apart(term, graph_.node(id).operands, 0, next);
  }

  bool take_apart(const PatternTerm& term, std::vector<ValueId> parts, std::size_t from,
                  std::size_t next) {
    if (parts.size() == term.args.size()) return in_some_order(term, parts, next);
    if (parts.size() > std::min(term.args.size(), kMaxChain)) return false;
    for (std::size_t k = from; k < parts.size(); ++k) {
      const NodeId inner = graph_.value(parts[k]).producer;
      if (!inner || graph_.node(inner).op != term.ops.front()) continue;
      std::vector<ValueId> more = parts;
      const std::vector<ValueId>& operands = graph_.node(inner).operands;
      more[k] = operands[0];
      more.insert(more.begin() + static_cast<std::ptrdiff_t>(k) + 1, operands[1]);
      inside_.push_back(inner);
      if (take_apart(term, std::move(more), k, next)) return true;
      inside_.pop_back();
    }
    return false;
  }

  bool in_some_order(const PatternTerm& term, const std::vector<ValueId>& parts, std::size_t next) {
    std::vector<std::size_t> order(parts.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::vector<ValueId> ordered(parts.size());
    do {
      for (std::size_t k = 0; k < order.size(); ++k) ordered[k] = parts[order[k]];
      if (in_this_order(term, ordered, next)) return true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  const Graph& graph_;
  std::vector<PatternBinding>& bindings_;
  std::vector<NodeId>& inside_;
  const std::function<bool()>& accept_;
  std::vector<Goal> goals_;
};

}  // namespace

bool find_match(const Graph& graph, const PatternTerm& pattern, NodeId root,
                std::vector<PatternBinding>& bindings, std::vector<NodeId>& inside,
                const std::function<bool()>& accept) {
  inside.clear();
  return Matcher(graph, bindings, inside, accept).run(pattern, root);
}

std::optional<double> uniform_value(const Graph& graph, ValueId value) {
  const Constant* constant = graph.constant_of(value);
  if (!constant || constant->dtype() == DType::String || is_complex(constant->dtype())) return {};
  if (constant->kind() == Constant::Kind::Splat) return constant->stored().real_at(0);
  if (constant->kind() != Constant::Kind::Dense) return {};
  const Tensor& tensor = constant->stored();
  if (tensor.size() == 0 || tensor.size() > kMaxUniformElements) return {};
  const double first = tensor.real_at(0);
  if (std::isnan(first)) return {};
  for (std::int64_t k = 1; k < tensor.size(); ++k) {
    const double other = tensor.real_at(k);
    if (other != first || std::signbit(other) != std::signbit(first)) return {};
  }
  return first;
}

}  // namespace tenon::passes::rewrite
