#include "expr/access.h"

#include "base/error.h"
#include "expr/analysis.h"
#include "ir/dim_fold.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

namespace tenon::inline expr {
namespace {

// Default extent of a symbol without a known number: large enough that memory traffic counts, small
// enough for any range.
constexpr std::int64_t kUsualExtent = 64;

std::optional<std::size_t> index_axis(const Expr& expr) {
  if (expr.node().kind != ExprKind::Index) return std::nullopt;
  return expr.node().axes.front();
}

bool is_number(const Expr& expr) {
  return expr.node().kind == ExprKind::Literal || expr.node().kind == ExprKind::Extent;
}

bool is_zero(const Expr& expr) {
  return expr.node().kind == ExprKind::Literal && expr.node().integer == 0;
}

// Returns the axis that a coordinate follows with unit or constant stride: `i`, `i + 3`, `2*i - 1`.
std::optional<std::size_t> followed_axis(const Expr& expr) {
  const ExprNode& node = expr.node();
  if (node.kind == ExprKind::Index) return index_axis(expr);
  if (node.kind != ExprKind::Binary) return std::nullopt;
  const Expr &left = node.args[0], &right = node.args[1];
  const bool is_shift = node.binary == BinaryOp::Add || node.binary == BinaryOp::Subtract;
  const bool is_scale = node.binary == BinaryOp::Multiply;
  if (!is_shift && !is_scale) return std::nullopt;
  for (const auto& [moving, fixed] : {std::pair(left, right), std::pair(right, left)}) {
    if (!is_number(fixed)) continue;
    if (is_scale && (fixed.node().kind != ExprKind::Literal || is_zero(fixed))) return std::nullopt;
    return followed_axis(moving);
  }
  return std::nullopt;
}

// Recognises `0` and `i * 0`, the coordinates of a repeated axis.
bool is_fixed_at_zero(const Expr& expr) {
  const ExprNode& node = expr.node();
  if (is_zero(expr)) return true;
  return node.kind == ExprKind::Binary && node.binary == BinaryOp::Multiply &&
         (is_zero(node.args[0]) || is_zero(node.args[1]));
}

// Returns whether the read only repeats axes of extent 1, in order.
bool is_broadcast(const ExprNode& read) {
  if (read.has_fill) return false;
  const Dims& source = read.args[0].dims();
  if (source.size() > read.dims.size()) return false;
  const std::size_t skipped = read.dims.size() - source.size();
  for (std::size_t k = 0; k < source.size(); ++k) {
    const Expr& coordinate = read.args[1 + k];
    if (index_axis(coordinate) == skipped + k && source[k] == read.dims[skipped + k]) continue;
    if (!(source[k] == Dim(1)) || !is_fixed_at_zero(coordinate)) return false;
  }
  return true;
}

// Returns whether different positions of the result never read the same element.
bool is_injective(const ExprNode& read) {
  std::vector<bool> is_followed(read.dims.size(), false);
  const std::size_t count = read.args[0].rank();
  for (std::size_t k = 0; k < count; ++k) {
    if (const auto axis = followed_axis(read.args[1 + k])) is_followed[*axis] = true;
  }
  for (std::size_t axis = 0; axis < read.dims.size(); ++axis) {
    if (!is_followed[axis] && !(read.dims[axis] == Dim(1))) return false;
  }
  return true;
}

bool is_arithmetic(ExprKind kind) {
  return kind == ExprKind::Unary || kind == ExprKind::Binary || kind == ExprKind::Select ||
         kind == ExprKind::Cast || kind == ExprKind::Index;
}

/// Walks a node's expressions from the results to the operands.
class AccessReader {
 public:
  explicit AccessReader(std::size_t operand_count) {
    found_.operands.resize(operand_count, Access::Unread);
    found_.reads_once = true;
  }

  void read(const Expr& result) {
    result_dims_.push_back(result.dims());
    walk(result, squeezed(result.dims()), State{});
  }

  NodeAccess take(Fusion kind) {
    found_.role = role(kind);
    if (found_.role != Role::Rows) {
      found_.axes.clear();
      found_.space = result_dims_.empty() ? Dims{} : result_dims_.front();
    }
    return std::move(found_);
  }

 private:
  struct State {
    bool is_moved = false, is_folded = false;
    unsigned key() const { return (is_moved ? 1u : 0u) | (is_folded ? 2u : 0u); }
  };

  Role role(Fusion kind) const {
    if (kind == Fusion::Opaque) return Role::Opaque;
    if (kind == Fusion::Contraction) return Role::Contraction;
    if (has_fold_) return is_rows() ? Role::Rows : Role::Windows;
    return has_arithmetic_ ? Role::Pointwise : Role::Move;
  }

  // Row reductions return one number per row or a result of the reduced space's shape.
  bool is_rows() const {
    if (!folds_alike_) return false;
    Dims row;
    for (std::size_t k = 0; k < found_.space.size(); ++k) {
      const bool is_folded = std::ranges::binary_search(found_.axes, k);
      if (!is_folded) row.push_back(found_.space[k]);
    }
    const Dims full = squeezed(found_.space), kept = squeezed(row);
    return std::ranges::all_of(result_dims_, [&](const Dims& dims) {
      const Dims result = squeezed(dims);
      return result == full || result == kept;
    });
  }

  void fold(const ExprNode& node, State state) {
    const Dims& dims = node.args[0].dims();
    found_.folded_elements += size_hint(product(dims));
    if (!has_fold_) {
      found_.space = dims;
      found_.axes = node.axes;
    } else if (found_.space != dims || found_.axes != node.axes) {
      folds_alike_ = false;
    }
    if (state.is_moved) folds_alike_ = false;
    has_fold_ = true;
    walk(node.args[0], squeezed(dims), {state.is_moved, true});
  }

  void leaf(const ExprNode& node, const Dims& space, State state) {
    Access access = Access::Aligned;
    if (state.is_moved) {
      access = state.is_folded ? Access::Window : Access::Moved;
      if (state.is_folded) folds_alike_ = false;
    } else if (squeezed(node.dims) != space) {
      access = Access::Broadcast;
    } else if (state.is_folded) {
      access = Access::Row;
    }
    Access& known = found_.operands.at(node.operand);
    known = std::max(known, access);
  }

  void walk(const Expr& expr, const Dims& space, State state) {
    const ExprNode& node = expr.node();
    if (!seen_.insert({&node, state.key()}).second) return;
    has_arithmetic_ |= is_arithmetic(node.kind);
    switch (node.kind) {
      case ExprKind::Operand:
        return leaf(node, space, state);
      case ExprKind::Reduce:
        return fold(node, state);
      case ExprKind::Read:
        return read_at(node, space, state);
      case ExprKind::Reshape: {
        const bool is_same = squeezed(node.dims) == squeezed(node.args[0].dims());
        walk(node.args[0], is_same ? space : Dims{}, {state.is_moved || !is_same, state.is_folded});
        return;
      }
      case ExprKind::Concat:
        for (const Expr& arg : node.args) walk(arg, {}, {true, state.is_folded});
        return;
      default:
        for (const Expr& arg : node.args) walk(arg, space, state);
    }
  }

  void read_at(const ExprNode& node, const Dims& space, State state) {
    const bool only_repeats = is_broadcast(node);
    const State moved{true, state.is_folded};
    if (!only_repeats) found_.reads_once &= is_injective(node);
    walk(node.args[0], space, only_repeats ? state : moved);
    const std::size_t rank = node.args[0].rank();
    // Coordinates and fill values are not arithmetic on the moved elements, but an operand in them
    // still counts as read.
    const bool had_arithmetic = has_arithmetic_;
    for (std::size_t k = 1; k <= rank; ++k) {
      if (!is_number(node.args[k]) && !index_axis(node.args[k])) walk(node.args[k], {}, moved);
    }
    if (node.has_fill) walk(node.args.back(), {}, state);
    has_arithmetic_ = had_arithmetic;
  }

  struct Key {
    const ExprNode* node;
    unsigned state;
    bool operator==(const Key&) const = default;
    auto operator<=>(const Key&) const = default;
  };

  NodeAccess found_;
  std::set<Key> seen_;
  std::vector<Dims> result_dims_;
  bool has_fold_ = false, folds_alike_ = true, has_arithmetic_ = false;
};

// Each result reads an element at most once, and the results have the operand's element count in
// total.
bool reads_every_element(const Graph& graph, const Node& node, const NodeAccess& access) {
  Dim given = 0, taken = 0;
  for (ValueId result : node.results) {
    if (!result) return false;
    given = given + element_count(graph.value(result).type.tensor());
  }
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (access.operands[k] == Access::Unread) continue;
    if (access.operands[k] == Access::Broadcast) return false;
    taken = taken + element_count(graph.value(node.operands[k]).type.tensor());
  }
  return given == taken;
}

void collect_symbols(const Graph& graph, const std::vector<ValueId>& values,
                     SymbolRanges& symbols) {
  for (ValueId value : values) {
    if (!value || !graph.value(value).type.is_tensor()) continue;
    for (const Dim& dim : graph.value(value).type.tensor().dims) {
      if (!dim.is_constant()) dim.collect_symbols(symbols);
    }
  }
}

// True if a result has symbols that neither its operands' extents nor, for symbols in attributes,
// the graph's inputs bind: elements of operands determine them.
bool adds_symbols(const Graph& graph, const Node& node) {
  SymbolRanges given, known;
  collect_symbols(graph, node.results, given);
  if (given.empty()) return false;
  collect_symbols(graph, node.operands, known);
  const auto is_known = [&](const auto& symbol) { return known.contains(symbol.first); };
  if (std::ranges::all_of(given, is_known)) return false;
  const bool reads_extents = std::ranges::any_of(node.operands, [&](ValueId operand) {
    return operand && graph.known_elements(operand) != nullptr;
  });
  if (reads_extents) return true;
  for (ValueId input : graph.inputs()) {
    const Type& type = graph.value(input).type;
    if (!type.is_tensor()) continue;
    for (const Dim& dim : type.tensor().dims) {
      if (dim.symbol_name()) dim.collect_symbols(known);
    }
  }
  return !std::ranges::all_of(given, is_known);
}

// The body of a fused group sees types rather than elements. Nodes whose elements determine extents
// of other nodes stay outside, and so do nodes with data-dependent extents.
bool is_plain(const Graph& graph, const Node& node) {
  if (node.op->is_random || !node.bodies.empty() || node.results.empty()) return false;
  for (ValueId operand : node.operands) {
    if (operand && !graph.value(operand).type.is_tensor()) return false;
  }
  for (ValueId result : node.results) {
    if (!result) continue;
    if (!graph.value(result).type.is_tensor()) return false;
    if (graph.known_elements(result)) return false;
  }
  return !adds_symbols(graph, node);
}

}  // namespace

Dims squeezed(const Dims& dims) {
  Dims kept;
  for (const Dim& dim : dims) {
    if (!(dim == Dim(1))) kept.push_back(dim);
  }
  return kept;
}

namespace {

// Evaluates dims as doubles at the size hints of their symbols: a cost over nine symbols may exceed
// every extent.
class UsualArithmetic : public DimArithmetic<double> {
 public:
  UsualArithmetic(const SymbolRanges& symbols, std::int64_t usual)
      : symbols_(symbols), usual_(usual) {}
  double number(std::int64_t value) override { return static_cast<double>(value); }
  double symbol(const std::string& name) override {
    const Range range = symbols_.find(name)->second;
    return static_cast<double>(std::clamp(usual_, range.lo, range.hi));
  }
  double add(double a, double b) override { return a + b; }
  double multiply(double a, double b) override { return a * b; }
  double floor_divide(double a, double b) override { return b == 0 ? 0 : std::floor(a / b); }
  double minimum(double a, double b) override { return std::min(a, b); }
  double maximum(double a, double b) override { return std::max(a, b); }

 private:
  const SymbolRanges& symbols_;
  std::int64_t usual_;
};

}  // namespace

double size_hint(const Dim& dim) {
  if (dim.is_constant()) return static_cast<double>(dim.constant());
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  const DimTree tree = tree_of(dim);
  const auto value = [&](std::int64_t usual) {
    UsualArithmetic arithmetic(symbols, usual);
    return fold(tree, arithmetic);
  };
  const double first = value(kUsualExtent);
  if (first > 0) return first;
  // A window needs a longer input than usual, such as the samples of a recording.
  for (std::int64_t usual = kUsualExtent; usual < kMaxExtent / 2; usual *= 2) {
    const double longer = value(usual * 2);
    if (longer >= static_cast<double>(kUsualExtent)) return longer;
  }
  return 0;
}

double least_value(const Dim& dim) {
  return static_cast<double>(std::max<std::int64_t>(1, dim.range().lo));
}

double size_hint_bytes(const Type& type) {
  return type.is_tensor() ? size_hint(byte_count(type.tensor())) : 0.0;
}

NodeAccess access_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  NodeAccess opaque;
  opaque.operands.resize(node.operands.size(), Access::Unread);
  if (node.op->fusion == Fusion::Opaque || node.operands.empty() || !is_plain(graph, node)) {
    return opaque;
  }
  try {
    const std::vector<Expr> exprs = lowered(graph, id);
    if (exprs.empty()) return opaque;
    AccessReader reader(node.operands.size());
    for (const Expr& expr : exprs) reader.read(expr);
    NodeAccess access = reader.take(node.op->fusion ? *node.op->fusion : fusion_kind(exprs));
    access.flops = size_hint(flops_of(exprs));
    access.covers =
        access.role == Role::Move && access.reads_once && reads_every_element(graph, node, access);
    return access;
  } catch (PlacedError& error) {  // an extent that is too large
    error.locate(graph.location(id));
    throw;
  }
}

namespace {

// Returns whether both nodes have the same access because all of its inputs are equal.
bool is_alike(const Graph& graph, NodeId a, NodeId b) {
  const Node &x = graph.node(a), &y = graph.node(b);
  const auto same_types = [&](const std::vector<ValueId>& left, const std::vector<ValueId>& right) {
    return std::ranges::equal(left, right, [&](ValueId v, ValueId w) {
      return v && w ? graph.value(v).type == graph.value(w).type : v == w;
    });
  };
  return x.op == y.op && x.bodies.empty() && y.bodies.empty() &&
         same_types(x.operands, y.operands) && same_types(x.results, y.results) &&
         x.attrs == y.attrs;
}

// Access depends on types alone unless an op reads known elements or dynamic attributes.
bool has_only_types(const Graph& graph, const Node& node) {
  for (std::size_t k = 0; k < node.operands.size() && k < node.op->operands.size(); ++k) {
    if (node.operands[k] && node.op->operands[k].is_dynamic_attribute) return false;
  }
  return std::ranges::none_of(
      node.results, [&](ValueId result) { return result && graph.known_elements(result); });
}

}  // namespace

IdMap<NodeId, NodeAccess> access_of_nodes(const Graph& graph) {
  constexpr std::size_t kRemembered = 8;
  IdMap<NodeId, NodeAccess> all(graph.node_id_bound());
  std::unordered_map<const OpDef*, std::vector<NodeId>> recent;
  for (NodeId id : graph.nodes_in_order()) {
    if (!has_only_types(graph, graph.node(id))) {
      all[id] = access_of(graph, id);
      continue;
    }
    std::vector<NodeId>& known = recent[graph.node(id).op];
    const auto found =
        std::ranges::find_if(known, [&](NodeId other) { return is_alike(graph, id, other); });
    all[id] = found != known.end() ? all[*found] : access_of(graph, id);
    if (found != known.end()) continue;
    if (known.size() == kRemembered) known.erase(known.begin());
    known.push_back(id);
  }
  return all;
}

}  // namespace tenon::inline expr
