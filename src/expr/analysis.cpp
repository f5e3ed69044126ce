#include "expr/analysis.h"

#include "expr/access.h"
#include "expr/fused_groups.h"
#include "expr/lowering.h"
#include "expr/names.h"
#include "ir/extent_too_large.h"

#include <algorithm>
#include <set>

namespace tenon::inline expr {
namespace {

// Visits each distinct node once. Skips coordinates: index arithmetic is folded into addressing on
// every target.
template <class Visit>
void walk(const Expr& expr, std::set<const ExprNode*>& seen, const Visit& visit) {
  const ExprNode& node = expr.node();
  if (!seen.insert(&node).second) return;
  visit(node);
  if (node.kind == ExprKind::Read) {
    walk(node.args.front(), seen, visit);
    if (node.has_fill) walk(node.args.back(), seen, visit);
  } else if (node.kind == ExprKind::Scatter) {
    walk(node.args[0], seen, visit);
    walk(node.args[1], seen, visit);
  } else {
    for (const Expr& arg : node.args) walk(arg, seen, visit);
  }
}

// Matches a sum of products of two operands, each with its own coordinates.
bool is_contraction(const ExprNode& node) {
  if (!is_contraction_expr(node)) return false;
  const ExprNode& body = node.args[0].node();
  const auto operands_of = [](const Expr& side) {
    std::set<std::size_t> operands;
    std::set<const ExprNode*> seen;
    walk(side, seen, [&](const ExprNode& inner) {
      if (inner.kind == ExprKind::Operand) operands.insert(inner.operand);
    });
    return operands;
  };
  const std::set<std::size_t> left = operands_of(body.args[0]), right = operands_of(body.args[1]);
  return !left.empty() && !right.empty() && left != right;
}

std::vector<Expr> lowered_exprs(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.op->lower) return {};
  std::vector<Type> operands, results;
  std::vector<Tensor> held(node.operands.size());
  std::vector<const Tensor*> dynamic(node.operands.size(), nullptr);
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    operands.push_back(node.operands[k] ? graph.value(node.operands[k]).type : Type{});
    if (!node.operands[k]) continue;
    if (!operands.back().is_known()) return {};
    if (k < node.op->operands.size() && node.op->operands[k].is_dynamic_attribute) {
      const Constant* constant = graph.constant_of(node.operands[k]);
      if (!constant) return {};
      held[k] = constant->materialise();
      dynamic[k] = &held[k];
    }
  }
  for (ValueId result : node.results) {
    results.push_back(result ? graph.value(result).type : Type{});
    if (result && !results.back().is_known()) return {};
  }
  std::vector<Expr> exprs =
      lower_op(*node.op, bind_dynamic_attributes(*node.op, node.attrs, dynamic),
               std::move(operands), std::move(results));
  std::erase_if(exprs, [](const Expr& expr) { return !expr.is_defined(); });
  return exprs;
}

Dim bytes_of(const Type& type) { return type.is_tensor() ? byte_count(type.tensor()) : Dim(0); }

}  // namespace

std::vector<Expr> lowered(const Graph& graph, NodeId id) {
  try {
    return lowered_exprs(graph, id);
  } catch (const ExtentTooLarge&) {
    return {};
  }
}

namespace {

Dim counted_flops(const std::vector<Expr>& exprs) {
  Dim flops = 0;
  std::set<const ExprNode*> seen;
  for (const Expr& expr : exprs) {
    if (!expr.is_defined()) continue;
    walk(expr, seen, [&](const ExprNode& node) {
      switch (node.kind) {
        case ExprKind::Unary:
        case ExprKind::Binary:
        case ExprKind::Select:
          flops = flops + product(node.dims);
          break;
        case ExprKind::Reduce:
        case ExprKind::Scan:
          flops = flops + product(node.args[0].dims());
          break;
        case ExprKind::Scatter:
          flops = flops + product(node.args[1].dims());
          break;
        default:
          break;
      }
    });
  }
  return flops;
}

}  // namespace

Dim flops_of(const std::vector<Expr>& exprs) {
  try {
    return counted_flops(exprs);
  } catch (const ExtentTooLarge&) {
    return 0;
  }
}

Fusion fusion_kind(const std::vector<Expr>& exprs) {
  bool moves = false, reduces = false, contracts = false, is_opaque = exprs.empty();
  std::set<const ExprNode*> seen;
  for (const Expr& expr : exprs) {
    walk(expr, seen, [&](const ExprNode& node) {
      switch (node.kind) {
        case ExprKind::Read:
        case ExprKind::Reshape:
        case ExprKind::Concat:
          moves = true;
          break;
        case ExprKind::Reduce:
          reduces = true;
          contracts |= is_contraction(node);
          break;
        case ExprKind::Scan:
        case ExprKind::Scatter:
          is_opaque = true;
          break;
        default:
          break;
      }
    });
  }
  if (is_opaque) return Fusion::Opaque;
  if (contracts) return Fusion::Contraction;
  if (reduces) return Fusion::Reduction;
  if (moves) return Fusion::Reshuffle;
  return Fusion::Elementwise;
}

// A group has the flops of its nodes; its intermediate values do not touch memory.
Dim flops_of(const Graph& graph, NodeId id) {
  if (!is_fused_group(graph, id)) return flops_of(lowered(graph, id));
  const Graph& body = graph.node(id).bodies.front();
  Dim flops = 0;
  for (NodeId inner : body.nodes_in_order()) flops = flops + flops_of(body, inner);
  return flops;
}

namespace {

// Bytes of a group's input. An input that is only read through data movement counts at most the
// bytes of the moved results.
Dim bytes_read_inside(const Graph& body, ValueId input) {
  const Dim whole = bytes_of(body.value(input).type);
  Dim taken = 0;
  if (body.is_output(input)) return whole;
  for (NodeId reader : body.readers(input)) {
    const NodeAccess access = access_of(body, reader);
    if (access.role != Role::Move || !access.reads_once) return whole;
    for (ValueId result : body.node(reader).results) {
      // Dead results of a split are not read.
      if (result && (body.is_output(result) || !body.readers(result).empty())) {
        taken = taken + bytes_of(body.value(result).type);
      }
    }
  }
  // a query without an assumption, since this is only a cost
  return provably_at_most(taken, whole) ? taken : whole;
}

Footprint counted_footprint(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Footprint footprint{flops_of(graph, id), 0, 0};
  std::set<ValueId> read;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const ValueId operand = node.operands[k];
    if (!operand || !read.insert(operand).second) continue;
    footprint.bytes_read =
        footprint.bytes_read +
        (is_fused_group(graph, id)
             ? bytes_read_inside(node.bodies.front(), node.bodies.front().inputs()[k])
             : bytes_of(graph.value(operand).type));
  }
  for (ValueId result : node.results) {
    if (result)
      footprint.bytes_written = footprint.bytes_written + bytes_of(graph.value(result).type);
  }
  return footprint;
}

}  // namespace

Footprint footprint_of(const Graph& graph, NodeId id) {
  try {
    return counted_footprint(graph, id);
  } catch (const ExtentTooLarge&) {
    return {};
  }
}

Fusion fusion_kind(const Graph& graph, NodeId id) {
  if (is_fused_group(graph, id)) {
    const Graph& body = graph.node(id).bodies.front();
    Fusion kind = Fusion::Elementwise;
    for (NodeId inner : body.nodes_in_order()) {
      if (body.constant_of(body.node(inner).results.front())) continue;
      kind = std::max(kind, fusion_kind(body, inner));
    }
    return kind;
  }
  const OpDef& op = *graph.node(id).op;
  return op.fusion ? *op.fusion : fusion_kind(lowered(graph, id));
}

std::string to_string(Fusion fusion) {
  switch (fusion) {
    case Fusion::Elementwise:
      return "elementwise";
    case Fusion::Reshuffle:
      return "reshuffle";
    case Fusion::Reduction:
      return "reduction";
    case Fusion::Contraction:
      return "contraction";
    case Fusion::Opaque:
      break;
  }
  return "opaque";
}

}  // namespace tenon::inline expr
