// Moves transposes up through elementwise nodes until they cancel, as long as fewer transposes
// remain.
#include "ops/definition/registry.h"
#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::passes::simplification {

using namespace rewrite;

namespace {

constexpr std::size_t kMaxRegion = 32;
constexpr std::int64_t kMaxPermuted = 1 << 16;

using Axes = std::vector<std::int64_t>;

Axes permutation(const Dims& perm, std::size_t rank) {
  if (!perm.empty()) return counted_axes(perm, rank).value_or(Axes{});
  Axes reversed(rank);
  for (std::size_t k = 0; k < rank; ++k) reversed[k] = static_cast<std::int64_t>(rank - 1 - k);
  return reversed;
}

Dims to_dims(const Axes& axes) { return Dims(axes.begin(), axes.end()); }

/// A transpose at the root and the elementwise nodes above it that have no other readers.
class TransposeRegion {
 public:
  explicit TransposeRegion(const Match& match)
      : match_(match),
        graph_(match.graph()),
        rank_(match.root_type().tensor().rank()),
        perm_(permutation(match.dims("q"), rank_)) {}

  /// Returns the root's value without the root's transpose; invalid if that saves no transpose.
  ValueId without_transpose() {
    const ValueId top = match_.value("y");
    if (perm_.size() != rank_ || !is_inside(top)) return {};
    std::vector<ValueId> pending{top};
    int saved = 1;
    while (!pending.empty()) {
      const ValueId value = pending.back();
      pending.pop_back();
      if (!seen_.insert(value).second) continue;
      if (is_inside(value)) {
        if (seen_.size() > kMaxRegion) return refused("too many nodes lie between");
        for (ValueId operand : graph_.node(graph_.value(value).producer).operands) {
          if (operand) pending.push_back(operand);
        }
        continue;
      }
      const std::optional<int> gain = gain_at(value);
      if (!gain) return {};
      saved += *gain;
    }
    if (saved <= 0) return {};  // not fewer transposes: it stays
    return moved(top);
  }

 private:
  ValueId refused(const char* why) const {
    match_.refuse(why);
    return {};
  }

  const TensorType* type(ValueId value) const { return match_.type(value); }

  // Returns whether the transpose may move past the value's producer.
  bool is_inside(ValueId value) const {
    const NodeId id = graph_.value(value).producer;
    const TensorType* made = type(value);
    return id && made && made->rank() == rank_ && match_.is_read_once(value) &&
           !graph_.constant_of(value) && is_pointwise(graph_, id);
  }

  const Node* transpose_of(ValueId value) const {
    const NodeId id = graph_.value(value).producer;
    if (!id || graph_.node(id).op != &find_op("transpose")) return nullptr;
    return &graph_.node(id);
  }

  // Composes the permutation of the transpose at `value` with the root's.
  Axes composed(const Node& transpose) const {
    const AttrValue* perm = transpose.attrs.find("perm");
    const Axes p = permutation(perm ? std::get<Dims>(*perm) : Dims{}, rank_);
    Axes both;
    for (const std::int64_t axis : perm_) both.push_back(p[static_cast<std::size_t>(axis)]);
    return both;
  }

  // Returns the number of transposes saved if the root's moves above this value; nullopt if it
  // cannot.
  std::optional<int> gain_at(ValueId value) const {
    const TensorType* read = type(value);
    if (!read) return {};
    if (read->rank() == 0) return 0;
    if (const Constant* constant = graph_.constant_of(value)) {
      if (constant->size() > kMaxPermuted) return {};
      return 0;
    }
    if (read->rank() != rank_) return {};
    const Node* transpose = transpose_of(value);
    if (!transpose) return -1;
    const bool is_last = match_.is_read_once(value);
    const Axes both = composed(*transpose);
    if (std::is_sorted(both.begin(), both.end())) return is_last ? 1 : 0;
    return is_last ? 0 : -1;
  }

  ValueId moved(ValueId value) {
    const auto known = moved_.find(value);
    if (known != moved_.end()) return known->second;
    return moved_[value] = is_inside(value) ? moved_node(value) : moved_leaf(value);
  }

  // Recursion of depth kMaxRegion at most.
  ValueId moved_node(ValueId value) {
    const Node node = graph_.node(graph_.value(value).producer);
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(operand ? moved(operand) : ValueId{});
    const ValueId made = match_.make(node.op->name, std::move(operands), node.attrs);
    // The last node takes the root's name.
    if (value != match_.value("y")) match_.succeed(value, made);
    return made;
  }

  ValueId moved_leaf(ValueId value) {
    if (type(value)->rank() == 0) return value;
    if (const Constant* constant = graph_.constant_of(value)) {
      const ValueId made = permuted(*constant);
      match_.succeed(value, made);
      return made;
    }
    const Node* transpose = transpose_of(value);
    const Axes both = transpose ? composed(*transpose) : perm_;
    const ValueId x = transpose ? transpose->operands.front() : value;
    if (std::is_sorted(both.begin(), both.end())) return x;
    return match_.make("transpose", {x}, {{"perm", to_dims(both)}});
  }

  ValueId permuted(const Constant& constant) const {
    Shape shape(rank_ - constant.shape().size(), 1);
    shape.insert(shape.end(), constant.shape().begin(), constant.shape().end());
    const Tensor wide = constant.materialise().reshaped(shape);
    const std::vector<Datum> result = reference::evaluate_op(
        find_op("transpose"), {{"perm", to_dims(perm_)}}, {Datum(wide)}, {true});
    return match_.make_constant(Constant(result.front().tensor()));
  }

  const Match& match_;
  const Graph& graph_;
  std::size_t rank_;
  Axes perm_;
  std::set<ValueId> seen_;
  std::map<ValueId, ValueId> moved_;
};

ValueId moved_up(const Match& match) {
  return match.root_type().is_tensor() ? TransposeRegion(match).without_transpose() : ValueId{};
}

bool is_read_here_only(const Match& match, std::string_view name) {
  const ValueId value = match.value(name);
  return !match.graph().is_output(value) &&
         (match.use_count(value) == 1 ||
          (match.use_count(value) == 2 && match.value("a") == match.value("b")));
}

bool has_own_transposes(const Match& match) {
  const TensorType *x = match.type("x"), *y = match.type("y");
  return x && y && x->rank() == y->rank() && is_read_here_only(match, "a") &&
         is_read_here_only(match, "b");
}

ValueId transposed_after(const Match& match) {
  const ValueId result = match.make(match.root_node().op->name,
                                    {match.value("x"), match.value("y")}, match.root_node().attrs);
  return match.make("transpose", {result}, {{"perm", match.dims("p")}});
}

}  // namespace

std::vector<Rule> transpose_rules() {
  return {
      {"add/sub/mul/div/maximum/minimum(a: transpose(x) {perm = p}, b: transpose(y) {perm = p})",
       transposed_after, has_own_transposes},
      {"transpose(y) {perm = q}", moved_up},
  };
}

}  // namespace tenon::passes::simplification
