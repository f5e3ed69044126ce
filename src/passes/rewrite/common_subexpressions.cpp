#include "passes/rewrite/common_subexpressions.h"

#include "passes/rewrite/pattern.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

namespace tenon::passes::rewrite {
namespace {

// Hashes weights by a few bytes; equal hashes are followed by a full comparison.
constexpr std::size_t kHashedBytes = 256;

void mix(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
}

void mix_elements(std::size_t& hash, const Tensor& tensor) {
  if (tensor.dtype() == DType::String) return;
  const std::span<const std::byte> bytes = tensor.bytes();
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / kHashedBytes);
  for (std::size_t k = 0; k < bytes.size(); k += step)
    mix(hash, static_cast<std::size_t>(bytes[k]));
}

std::size_t hash_of(const Constant& constant) {
  std::size_t hash = static_cast<std::size_t>(constant.dtype());
  mix(hash, static_cast<std::size_t>(constant.kind()));
  for (const std::int64_t extent : constant.shape()) mix(hash, static_cast<std::size_t>(extent));
  mix(hash, constant.seed());
  if (constant.kind() == Constant::Kind::Scaled) {
    mix(hash, hash_of(constant.base()));
    mix_elements(hash, constant.factors());
  } else if (constant.kind() == Constant::Kind::Dense || constant.kind() == Constant::Kind::Splat) {
    mix_elements(hash, constant.stored());
  }
  return hash;
}

std::size_t hash_of(const Dim& dim) {
  if (dim.is_constant()) return std::hash<std::int64_t>()(dim.constant());
  return std::hash<std::string>()(to_string(dim));
}

struct HashOfAttr {
  std::size_t operator()(bool x) const { return x ? 1 : 0; }
  std::size_t operator()(const Dim& x) const { return hash_of(x); }
  std::size_t operator()(double x) const { return std::hash<double>()(x); }
  std::size_t operator()(const std::string& x) const { return std::hash<std::string>()(x); }
  std::size_t operator()(DType x) const { return static_cast<std::size_t>(x); }
  std::size_t operator()(const Dims& x) const {
    std::size_t hash = x.size();
    for (const Dim& dim : x) mix(hash, hash_of(dim));
    return hash;
  }
  std::size_t operator()(const std::vector<double>& x) const {
    std::size_t hash = x.size();
    for (const double number : x) mix(hash, std::hash<double>()(number));
    return hash;
  }
  std::size_t operator()(const std::vector<std::string>& x) const { return x.size(); }
  std::size_t operator()(const Constant& x) const { return hash_of(x); }
  std::size_t operator()(const Type& x) const { return static_cast<std::size_t>(x.kind()); }
};

bool is_random(const Graph& graph);

bool is_random(const Node& node) {
  return node.op->is_random || std::any_of(node.bodies.begin(), node.bodies.end(),
                                           [](const Graph& body) { return is_random(body); });
}

bool is_random(const Graph& graph) {
  for (NodeId id : graph.nodes_in_order()) {
    if (is_random(graph.node(id))) return true;
  }
  return false;
}

// Exchanged operands give the same bits, except for min and max of zeros.
bool has_order(const OpDef& op) {
  return !commutes(op) || op.name == "maximum" || op.name == "minimum";
}

class Merger {
 public:
  explicit Merger(Graph& graph) : graph_(graph), next_alike_(graph.node_id_bound()) {
    first_alike_.reserve(graph.node_count());
  }

  std::size_t run() {
    std::size_t count = 0;
    for (NodeId id : graph_.nodes_in_order()) {
      const Node& node = graph_.node(id);
      if (node.results.empty() || is_random(node)) continue;
      const auto [first, is_new] = first_alike_.try_emplace(hash_of(node), id);
      if (is_new) continue;
      NodeId same = first->second;
      bool is_found = is_same(id, same);
      for (; !is_found && next_alike_[same]; is_found = is_same(id, same)) same = next_alike_[same];
      if (!is_found) {
        next_alike_[same] = id;
      } else if (may_share_names(id, same)) {
        merge(id, same);
        ++count;
      }
    }
    if (count > 0) graph_.erase_dead();
    return count;
  }

 private:
  static std::vector<ValueId> operands_of(const Node& node) {
    std::vector<ValueId> operands = node.operands;
    if (!has_order(*node.op)) std::sort(operands.begin(), operands.end());
    return operands;
  }

  static std::size_t hash_of(const Node& node) {
    std::size_t hash = std::hash<const void*>()(node.op);
    for (ValueId operand : operands_of(node)) mix(hash, operand.index());
    for (const auto& [name, value] : node.attrs) {
      mix(hash, std::hash<std::string>()(name));
      mix(hash, std::visit(HashOfAttr(), value));
    }
    return hash;
  }

  bool is_same(NodeId a, NodeId b) const {
    const Node &x = graph_.node(a), &y = graph_.node(b);
    if (x.op != y.op || x.results.size() > y.results.size() || x.bodies.size() != y.bodies.size()) {
      return false;
    }
    if (operands_of(x) != operands_of(y) || !(x.attrs == y.attrs)) return false;
    for (std::size_t k = 0; k < x.results.size(); ++k) {
      if (!x.results[k]) continue;
      if (!y.results[k]) return false;
      const Type &wanted = graph_.value(x.results[k]).type,
                 &given = graph_.value(y.results[k]).type;
      if (!wanted.is_known() || !(wanted == given)) return false;
    }
    return std::equal(x.bodies.begin(), x.bodies.end(), y.bodies.begin(),
                      [](const Graph& v, const Graph& w) { return identical(v, w); });
  }

  // Two outputs have two names, and each needs a node to keep its own.
  bool may_share_names(NodeId a, NodeId b) const {
    const std::vector<ValueId>&x = graph_.node(a).results, &y = graph_.node(b).results;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (x[k] && graph_.is_output(x[k]) && graph_.is_output(y[k])) return false;
    }
    return true;
  }

  void merge(NodeId id, NodeId into) {
    const std::vector<ValueId> old = graph_.node(id).results, kept = graph_.node(into).results;
    for (std::size_t k = 0; k < old.size(); ++k) {
      if (!old[k]) continue;
      const bool was_output = graph_.is_output(old[k]);
      graph_.replace_uses(old[k], kept[k]);
      if (was_output) graph_.swap_names(old[k], kept[k]);
    }
  }

  Graph& graph_;
  std::unordered_map<std::size_t, NodeId> first_alike_;  // by hash
  IdMap<NodeId, NodeId> next_alike_;                     // next node of the same hash
};

}  // namespace

std::size_t merge_common_subexpressions(Graph& graph) { return Merger(graph).run(); }

}  // namespace tenon::passes::rewrite
