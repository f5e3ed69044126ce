#include "nests/scalar_pool.h"

#include <algorithm>
#include <bit>

namespace tenon::nests {
namespace {

std::size_t hash_of(const ScalarNode& node) {
  std::size_t hash = 0;
  const auto add = [&](std::size_t part) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15U + (hash >> 29);
  };
  add(static_cast<std::size_t>(node.kind));
  add(static_cast<std::size_t>(node.dtype));
  add(static_cast<std::size_t>(node.integer));
  add(std::bit_cast<std::uint64_t>(node.real));
  add(node.id);
  add(static_cast<std::size_t>(node.unary));
  add(static_cast<std::size_t>(node.binary));
  add(static_cast<std::size_t>(node.bounds));
  for (const Scalar& arg : node.args) add(reinterpret_cast<std::size_t>(&arg.node()));
  return hash;
}

// Arguments must be pooled. Literals are compared bitwise: zeros have signs.
bool is_alike(const ScalarNode& a, const ScalarNode& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.integer == b.integer &&
         std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real) &&
         a.id == b.id && a.unary == b.unary && a.binary == b.binary && a.bounds == b.bounds &&
         a.view == b.view &&
         std::ranges::equal(a.args, b.args, [](const Scalar& x, const Scalar& y) {
           return &x.node() == &y.node();
         });
}

}  // namespace

Scalar ScalarPool::operator()(const Scalar& scalar) {
  if (const auto known = known_.find(&scalar.node()); known != known_.end()) return known->second;
  bool is_changed = false;
  std::vector<Scalar> args;
  for (const Scalar& arg : scalar->args) {
    args.push_back((*this)(arg));
    is_changed |= &args.back().node() != &arg.node();
  }
  Scalar made = scalar;
  if (is_changed) {
    ScalarNode node = scalar.node();
    node.args = std::move(args);
    made = Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  }
  const std::size_t hash = hash_of(made.node());
  const auto [begin, end] = made_.equal_range(hash);
  const auto same = std::find_if(
      begin, end, [&](const auto& entry) { return is_alike(entry.second.node(), made.node()); });
  if (same != end) {
    made = same->second;
  } else {
    made_.emplace(hash, made);
  }
  kept_.push_back(scalar);
  known_.emplace(&scalar.node(), made);
  return made;
}

void ScalarPool::clear() {
  made_.clear();
  known_.clear();
  kept_.clear();
}

}  // namespace tenon::nests
