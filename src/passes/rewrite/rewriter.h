#pragma once

#include "passes/definition/pass.h"
#include "passes/rewrite/match.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::passes::rewrite {

/// Decides whether a rule may be applied; a refusal gives its reason with `match.refuse(…)`.
using Condition = std::function<bool(const Match&)>;
Condition operator&&(Condition a, Condition b);
Condition operator||(Condition a, Condition b);

/// Replacement of a pattern: text, or a function that returns the replacing value (invalid to
/// refuse).
struct Replacement {
  Replacement(const char* replacement) : text(replacement) {}  // NOLINT: text is a replacement
  template <class F>
  requires std::is_invocable_r_v<ValueId, F, const Match&> Replacement(F function)
      : make(function) {}  // NOLINT: a function is a replacement
  std::string text;
  std::function<ValueId(const Match&)> make;
};

/// Rewrites `pattern` to `replacement` if `when` agrees.
struct Rule {
  std::string pattern;
  Replacement replacement;
  Condition when = nullptr;
  /// applies to values of unknown type too
  bool holds_for_any_type = false;
};

/// Compiled rules. Throws Error for an invalid rule.
class RuleSet {
 public:
  explicit RuleSet(std::vector<Rule> rules, std::vector<std::string> definitions = {});

  struct Compiled {
    Rule rule;
    Names names;
    PatternTerm pattern, replacement;
  };
  const std::vector<Compiled>& rules() const { return rules_; }
  /// Returns the rules whose pattern may start at the op, in the given order.
  const std::vector<std::size_t>& starting_at(const OpDef& op) const;

 private:
  void index(const PatternTerm& pattern, std::size_t rule);
  std::vector<Compiled> rules_;
  std::unordered_map<const OpDef*, std::vector<std::size_t>> by_op_;
};

struct RewriteOutcome {
  std::size_t rewrites = 0;
  /// false if rules kept undoing each other and were stopped
  bool has_settled = true;
};

/// Applies rules until a fixed point and removes dead nodes. A replacement takes over the name and
/// the stated type of the value; an output keeps its name. Types never change.
RewriteOutcome apply(Graph& graph, const RuleSet& rules, std::string_view pass,
                     const PassOptions& options);

}  // namespace tenon::passes::rewrite
