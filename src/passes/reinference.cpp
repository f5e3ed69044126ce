#include "passes/reinference.h"

#include "passes/rewrite/match.h"

#include <optional>

namespace tenon::passes {
namespace {

struct Facts {
  Type type;
  std::optional<Dims> known;
  bool operator==(const Facts&) const = default;
};

Facts facts_of(const Graph& graph, ValueId value) {
  if (!value) return {};
  const Dims* known = graph.known_elements(value);
  return {graph.value(value).type, known ? std::optional(*known) : std::nullopt};
}

}  // namespace

void Reinference::mark(NodeId id) {
  if (id.index() >= is_marked_.size()) is_marked_.resize(graph_.node_id_bound(), false);
  if (is_marked_[id.index()]) return;
  is_marked_[id.index()] = true;
  ++marked_count_;
}

void Reinference::mark_readers(ValueId value) {
  for (const NodeId reader : graph_.readers(value)) mark(reader);
}

// Both types describe one value: a symbol that is gone equals the extent that replaced it.
void Reinference::learn(const Type& before, const Type& after) {
  if (!before.is_tensor() || !after.is_tensor()) return;
  const Dims &old = before.tensor().dims, &now = after.tensor().dims;
  if (old.size() != now.size()) return;
  SymbolRanges left;
  for (const Dim& extent : now) extent.collect_symbols(left);
  for (std::size_t axis = 0; axis < old.size(); ++axis) {
    const std::optional<std::string> symbol = old[axis].symbol_name();
    if (!symbol || rewrite::is_written_down(old[axis]) || left.contains(*symbol)) continue;
    learned_.try_emplace(*symbol, now[axis]);
  }
}

void Reinference::apply_learned(NodeId id) {
  if (learned_.empty()) return;
  Attributes attrs = substitute(graph_.node(id).attrs, learned_);
  if (attrs == graph_.node(id).attrs) return;
  graph_.mutable_node(id).attrs = graph_.node(id).op->canonical_attributes(std::move(attrs));
  mark(id);
}

void Reinference::refresh(NodeId id) {
  apply_learned(id);
  if (id.index() >= is_marked_.size() || !is_marked_[id.index()]) return;
  is_marked_[id.index()] = false;
  --marked_count_;
  const std::vector<ValueId> results = graph_.node(id).results;
  std::vector<Facts> before;
  for (const ValueId result : results) before.push_back(facts_of(graph_, result));
  graph_.infer(id);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k] || facts_of(graph_, results[k]) == before[k]) continue;
    learn(before[k].type, graph_.value(results[k]).type);
    mark_readers(results[k]);
  }
}

void Reinference::refresh_from(NodeId id) {
  for (; id && !is_done(); id = graph_.next(id)) refresh(id);
}

}  // namespace tenon::passes
