#include "codegen/cuda/merge_loops.h"

#include "codegen/cuda/binding.h"
#include "nests/affine.h"
#include "nests/index_map.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::codegen::cuda {
namespace {

// Stores of a loop body by buffer; clears `is_plain` if the body contains inner loops.
std::map<std::size_t, const Statement*> stores_of(const Block& block, bool& is_plain) {
  std::map<std::size_t, const Statement*> stores;
  for (const Statement& statement : block) {
    is_plain &=
        statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Define;
    if (statement.kind == Statement::Kind::Store)
      is_plain &= stores.emplace(statement.id, &statement).second;
  }
  return stores;
}

std::set<std::size_t> read_by(const Block& block) {
  std::set<std::size_t> ids;
  nests::for_each_load(block, [&](const Scalar& load) { ids.insert(load->id); });
  return ids;
}

bool is_same_place(const Scalar& load, const Statement& store) {
  if (load->view != store.view || load->args.size() != store.indices.size()) return false;
  for (std::size_t k = 0; k < store.indices.size(); ++k) {
    const auto a = nests::affine_of(load->args[k]), b = nests::affine_of(store.indices[k]);
    if (!a || !b || !(*a == *b)) return false;
  }
  return true;
}

// Tests whether the second loop can be fused into the first, and rewrites it for that.
bool merge_into(const LoopNest& nest, const Statement& first, Statement& second) {
  if (!is_free(first) || !is_free(second) || !(first.extent == second.extent)) return false;
  bool is_plain = true;
  const auto made = stores_of(first.body, is_plain), others = stores_of(second.body, is_plain);
  if (!is_plain) return false;
  const std::set<std::size_t> read_before = read_by(first.body);
  for (const auto& [buffer, store] : others) {
    if (made.contains(buffer) || read_before.contains(buffer)) return false;
  }
  Block body = second.body;
  if (first.id != second.id) nests::substitute_loop(body, second.id, loop_scalar(first.id));
  bool are_in_place = true;
  nests::for_each_load(body, [&](const Scalar& load) {
    const auto store = made.find(load->id);
    are_in_place &= store == made.end() ||
                    (load->bounds == Bounds::Inside && is_same_place(load, *store->second));
  });
  if (!are_in_place) return false;
  nests::ScalarRewriter([&](ScalarNode node) {
    const auto store = node.kind == ScalarKind::Load ? made.find(node.id) : made.end();
    if (store == made.end()) return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    // The value after a round trip through memory.
    return nests::cast_scalar(store->second->value, nest.buffers[node.id].dtype);
  }).apply(body);
  second.body = std::move(body);
  return true;
}

void merge(const LoopNest& nest, Block& block) {
  for (Statement& statement : block) merge(nest, statement.body);
  Block kept;
  for (Statement& statement : block) {
    if (!kept.empty() && merge_into(nest, kept.back(), statement)) {
      for (Statement& inner : statement.body) kept.back().body.push_back(std::move(inner));
    } else {
      kept.push_back(std::move(statement));
    }
  }
  block = std::move(kept);
}

}  // namespace

void merge_neighbouring_loops(LoopNest& nest) { merge(nest, nest.body); }

}  // namespace tenon::codegen::cuda
