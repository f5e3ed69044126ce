#include "ir/dim_fold.h"

#include "ir/dim_expr.h"

namespace tenon::inline ir {
namespace {

using symbolic::Atom;

DimTree number_tree(std::int64_t number) {
  DimTree tree;
  tree.number = number;
  return tree;
}

// Members that broadcast are equal except for those that are 1: the greatest is the extent, or 0 if
// one of them is 0.
DimTree broadcast_tree(const Atom& atom) {
  DimTree greatest, least, tree;
  greatest.kind = DimTree::Kind::Maximum;
  least.kind = DimTree::Kind::Minimum;
  for (const Dim& member : atom.arguments) greatest.args.push_back(tree_of(member));
  if (atom.range.lo > 0) return greatest;
  least.args = greatest.args;
  least.args.push_back(number_tree(1));
  tree.kind = DimTree::Kind::Multiply;
  tree.args = {std::move(greatest), std::move(least)};
  return tree;
}

DimTree atom_tree(const Atom& atom) {
  DimTree tree;
  switch (atom.kind) {
    case Atom::Kind::Symbol:
      tree.kind = DimTree::Kind::Symbol;
      tree.symbol = atom.name;
      return tree;
    case Atom::Kind::FloorDiv:
      tree.kind = DimTree::Kind::FloorDivide;
      break;
    case Atom::Kind::Min:
      tree.kind = DimTree::Kind::Minimum;
      break;
    case Atom::Kind::Max:
      tree.kind = DimTree::Kind::Maximum;
      break;
    case Atom::Kind::Broadcast:
      return broadcast_tree(atom);
  }
  for (const Dim& argument : atom.arguments) tree.args.push_back(tree_of(argument));
  return tree;
}

}  // namespace

DimTree tree_of(const Dim& dim) {
  if (dim.is_constant()) return number_tree(dim.constant());
  const DimExpr expr = DimExpr::of(dim);
  DimTree sum;
  sum.kind = DimTree::Kind::Add;
  for (const symbolic::Term& term : expr.terms) {
    DimTree product;
    product.kind = DimTree::Kind::Multiply;
    if (term.coefficient != 1) product.args.push_back(number_tree(term.coefficient));
    for (const symbolic::Factor& factor : term.factors) {
      for (int k = 0; k < factor.power; ++k) product.args.push_back(atom_tree(*factor.atom));
    }
    if (product.args.size() == 1) {
      DimTree only = std::move(product.args.front());
      product = std::move(only);
    }
    sum.args.push_back(std::move(product));
  }
  if (expr.constant != 0) sum.args.push_back(number_tree(expr.constant));
  if (sum.args.size() > 1) return sum;
  DimTree only = std::move(sum.args.front());
  return only;
}

}  // namespace tenon::inline ir
