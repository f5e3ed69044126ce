#include "passes/shard/strategies.h"

#include "base/error.h"
#include "expr/analysis.h"
#include "ops/families/collective.h"
#include "passes/shard/expr_sharding.h"

#include <algorithm>
#include <set>

namespace tenon::passes {
namespace {

constexpr std::size_t kMaxCombinations = 400;

// The attribute that states the extents of a result.
constexpr const char* kExtents = "shape";

bool is_known(const Type& type) {
  return type.is_tensor() &&
         std::ranges::all_of(type.tensor().dims, [](const Dim& dim) { return dim.is_constant(); });
}

class StrategyFinder {
 public:
  StrategyFinder(const Graph& graph, NodeId id, std::int64_t ranks, const ShardCosts& costs)
      : graph_(graph), node_(graph.node(id)), id_(id), ranks_(ranks), costs_(costs) {}

  Strategies find() {
    Strategy plain;
    plain.operands.resize(node_.operands.size());
    plain.results.resize(node_.results.size());
    plain.attrs = node_.attrs;
    found_.candidates.push_back(plain);
    if (!has_known_types() || !node_.bodies.empty()) return std::move(found_);
    if (is_collective(*node_.op)) return of_collective();
    if (node_.op->is_random) return std::move(found_);
    whole_ = lowered(graph_, id_);
    found_.candidates[0].seconds = seconds_of(whole_, {});
    if (whole_.empty()) return std::move(found_);
    list_options();
    std::vector<Sharding> chosen(node_.operands.size());
    if (combination_count() <= kMaxCombinations) {
      combine(0, chosen);
    } else {
      follow_largest();
    }
    return std::move(found_);
  }

 private:
  bool has_known_types() const {
    const auto is_fine = [&](ValueId value) {
      return !value || is_known(graph_.value(value).type);
    };
    return std::ranges::all_of(node_.operands, is_fine) &&
           std::ranges::all_of(node_.results, is_fine);
  }
  const TensorType& type_of(ValueId value) const { return graph_.value(value).type.tensor(); }

  // Sums over other groups of ranks are elementwise.
  Strategies of_collective() {
    if (node_.op->name != "all_reduce") return std::move(found_);  // op-name: only adds
    const TensorType& type = type_of(node_.operands[0]);
    for (const Sharding& sharding : options_of(type)) {
      if (sharding.is_whole()) continue;
      Strategy candidate = found_.candidates[0];
      candidate.operands[0] = candidate.results[0] = sharding;
      found_.candidates.push_back(std::move(candidate));
    }
    return std::move(found_);
  }

  std::vector<Sharding> options_of(const TensorType& type) const {
    std::vector<Sharding> options{Sharding::whole()};
    for (std::size_t axis = 0; axis < type.rank(); ++axis) {
      if (can_hold(type, Sharding::split(axis), ranks_)) options.push_back(Sharding::split(axis));
    }
    if (can_hold(type, Sharding::partial(), ranks_)) options.push_back(Sharding::partial());
    return options;
  }

  void list_options() {
    for (ValueId operand : node_.operands) {
      if (!operand) {
        options_.push_back({Sharding::whole()});
        continue;
      }
      const TensorType& type = type_of(operand);
      options_.push_back(options_of(type));
      for (std::size_t axis = 0; axis < type.rank(); ++axis) {
        if (can_hold(type, Sharding::split(axis), ranks_) || type.dims[axis] == Dim(1)) continue;
        refuse(concat(name_of(options_.size() - 1), " along axis ", axis, ": ",
                      type.dims[axis].constant(), " is no multiple of ", ranks_, " ranks"));
      }
    }
  }

  // The op's name of the operand, equal for all nodes that compute the same.
  const std::string& name_of(std::size_t operand) const {
    return node_.op->operands[std::min(operand, node_.op->operands.size() - 1)].name;
  }
  void refuse(std::string why) {
    if (seen_.insert(why).second) found_.refusals.push_back(std::move(why));
  }

  std::size_t combination_count() const {
    std::size_t count = 1;
    for (const auto& options : options_)
      count = std::min(count * options.size(), kMaxCombinations * 2);
    return count;
  }

  void combine(std::size_t operand, std::vector<Sharding>& chosen) {
    if (operand == chosen.size()) return add_with_extents(chosen);
    for (const Sharding& option : options_[operand]) {
      chosen[operand] = option;
      combine(operand + 1, chosen);
    }
  }

  // With too many operands for exhaustive search, shards the others like the largest, where they
  // have its axis.
  void follow_largest() {
    std::size_t largest = 0;
    for (std::size_t k = 0; k < node_.operands.size(); ++k) {
      if (!node_.operands[largest]) largest = k;
      if (node_.operands[k] && options_[k].size() > options_[largest].size()) largest = k;
    }
    const Dims dims = type_of(node_.operands[largest]).dims;
    for (const Sharding& option : options_[largest]) {
      if (!option.is_split()) continue;
      std::vector<Sharding> chosen(node_.operands.size());
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        if (node_.operands[k]) chosen[k] = like(type_of(node_.operands[k]), dims, option.axis);
      }
      add_with_extents(chosen);
    }
  }

  Sharding like(const TensorType& type, const Dims& dims, std::size_t axis) const {
    const std::size_t from_end = dims.size() - axis;
    std::optional<std::size_t> own;
    if (type.rank() >= from_end && type.dims[type.rank() - from_end] == dims[axis])
      own = type.rank() - from_end;
    if (!own && type.rank() == 1 && type.dims[0] == dims[axis]) own = 0;
    return own && can_hold(type, Sharding::split(*own), ranks_) ? Sharding::split(*own)
                                                                : Sharding::whole();
  }

  // Replaces the result's extents in the attribute by those of the shard.
  void add_with_extents(const std::vector<Sharding>& chosen) {
    const AttrValue* stated = node_.attrs.find(kExtents);
    const Dims* extents = stated ? std::get_if<Dims>(stated) : nullptr;
    const bool is_plain =
        std::ranges::all_of(chosen, [](const Sharding& s) { return s.is_whole(); });
    if (!is_plain) add(chosen, node_.attrs);
    if (extents == nullptr || node_.results.size() != 1 ||
        extents->size() != type_of(node_.results[0]).rank())
      return;
    for (std::size_t axis = 0; axis < extents->size(); ++axis) {
      const Dim& extent = (*extents)[axis];
      const bool is_even =
          extent.is_constant() && extent.constant() > 0 && extent.constant() % ranks_ == 0;
      if (!is_even) continue;
      Dims part = *extents;
      part[axis] = Dim(extent.constant() / ranks_);
      Attributes attrs = node_.attrs;
      attrs.set(kExtents, part);
      add(chosen, std::move(attrs));
    }
  }

  // The expression of a rank must compute its shard of the whole.
  void add(const std::vector<Sharding>& chosen, Attributes attrs) {
    Graph scratch;
    std::vector<ValueId> operands;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const ValueId operand = node_.operands[k];
      operands.push_back(
          operand ? scratch.add_input(concat("x", k), part_of(type_of(operand), chosen[k], ranks_))
                  : ValueId{});
    }
    std::vector<std::string> names;
    for (ValueId result : node_.results) names.push_back(result ? "" : "_");
    NodeId made;
    std::vector<Expr> part;
    try {
      made = scratch.add_node({node_.op, std::move(operands), attrs, {}, std::move(names), ""});
      part = lowered(scratch, made);
    } catch (const Error&) {
      return;  // impossible shapes
    }
    if (part.size() != whole_.size()) return;
    Strategy candidate{chosen, {}, std::move(attrs), seconds_of(part, chosen)};
    std::size_t expr = 0;
    for (ValueId result : node_.results) {
      if (!result) {
        candidate.results.emplace_back();
        continue;
      }
      const auto sharding = sharding_of(whole_[expr], part[expr], chosen, ranks_);
      ++expr;
      if (const auto* why = std::get_if<std::string>(&sharding)) return refuse_split(chosen, *why);
      candidate.results.push_back(std::get<Sharding>(sharding));
      const Type& local =
          scratch.value(scratch.node(made).results[candidate.results.size() - 1]).type;
      const bool has_type =
          can_hold(type_of(result), candidate.results.back(), ranks_) && local.is_tensor() &&
          local.tensor() == part_of(type_of(result), candidate.results.back(), ranks_);
      if (!has_type) return;
    }
    found_.candidates.push_back(std::move(candidate));
  }

  // Reports refusals only for a single split operand.
  void refuse_split(const std::vector<Sharding>& chosen, const std::string& why) {
    std::optional<std::size_t> only;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      if (chosen[k].is_whole()) continue;
      if (only || !chosen[k].is_split()) return;
      only = k;
    }
    if (!only) return;
    refuse(concat(name_of(*only), " along axis ", chosen[*only].axis, ": ", why));
  }

  double seconds_of(const std::vector<Expr>& exprs, const std::vector<Sharding>& chosen) const {
    double bytes = 0;
    for (std::size_t k = 0; k < node_.operands.size(); ++k) {
      if (!node_.operands[k]) continue;
      const auto all = static_cast<double>(byte_count(type_of(node_.operands[k])).constant());
      const bool is_part = k < chosen.size() && chosen[k].is_split();
      bytes += is_part ? all / static_cast<double>(ranks_) : all;
    }
    for (const Expr& expr : exprs) {
      const TensorType type{expr.dtype(), expr.dims(), {}};
      bytes += static_cast<double>(byte_count(type).constant());
    }
    const Dim flops = flops_of(exprs);
    const double work = flops.is_constant() ? static_cast<double>(flops.constant()) : 0;
    return work / costs_.flops_per_s + bytes / costs_.memory_bytes_per_s;
  }

  const Graph& graph_;
  const Node& node_;
  NodeId id_;
  std::int64_t ranks_;
  const ShardCosts& costs_;
  std::vector<Expr> whole_;
  std::vector<std::vector<Sharding>> options_;  // by operand
  std::set<std::string> seen_;
  Strategies found_;
};

}  // namespace

bool Strategy::is_plain() const {
  const auto is_whole = [](const Sharding& sharding) { return sharding.is_whole(); };
  return std::ranges::all_of(operands, is_whole) && std::ranges::all_of(results, is_whole);
}

Strategies strategies_of(const Graph& graph, NodeId node, std::int64_t ranks,
                         const ShardCosts& costs) {
  return StrategyFinder(graph, node, ranks, costs).find();
}

}  // namespace tenon::passes
