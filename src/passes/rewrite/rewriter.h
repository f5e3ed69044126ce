#pragma once

#include "passes/pass.h"
#include "passes/rewrite/match.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::rewrite {

/// Says whether a rule may be applied; a refusal says why with `match.refuse(…)`.
using Condition = std::function<bool(const Match&)>;
Condition operator&&(Condition a, Condition b);
Condition operator||(Condition a, Condition b);

/// What takes the place of a pattern: text, or a function that gives the value to read instead (an
/// invalid one to refuse).
struct Replacement {
  Replacement(const char* replacement) : text(replacement) {}  // NOLINT: text is a replacement
  template <class F>
  requires std::is_invocable_r_v<ValueId, F, const Match&> Replacement(F function)
      : make(function) {}  // NOLINT: a function is a replacement
  std::string text;
  std::function<ValueId(const Match&)> make;
};

/// `pattern` becomes `replacement` where `when` agrees.
struct Rule {
  std::string pattern;
  Replacement replacement;
  Condition when = nullptr;
  /// also where types are not known before values flow
  bool holds_for_any_type = false;
};

/// Rules, read once. Throws Error where one is not well written.
class RuleSet {
 public:
  explicit RuleSet(std::vector<Rule> rules, std::vector<std::string> definitions = {});

  struct Compiled {
    Rule rule;
    Names names;
    Term pattern, replacement;
  };
  const std::vector<Compiled>& rules() const { return rules_; }
  /// The rules whose pattern may start at the op, in the order given.
  const std::vector<std::size_t>& starting_at(const OpDef& op) const;

 private:
  void index(const Term& pattern, std::size_t rule);
  std::vector<Compiled> rules_;
  std::unordered_map<const OpDef*, std::vector<std::size_t>> by_op_;
};

struct Outcome {
  std::size_t rewrites = 0;
  /// false where rules kept undoing each other and were stopped
  bool has_settled = true;
};

/// Applies rules until none fits; removes what is no longer read. A value that is replaced hands
/// its name and its stated type to the one in its place; an output keeps its name. Nothing is
/// replaced by a value of another type.
Outcome apply(Graph& graph, const RuleSet& rules, std::string_view pass,
              const PassOptions& options);

}  // namespace tenon::rewrite
