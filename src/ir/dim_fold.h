#pragma once

#include "ir/dim.h"

namespace tenon::inline ir {

/// Rebuilds a dim bottom-up in another arithmetic (a visitor over numbers and symbols).
template <class T>
struct DimArithmetic {
  virtual ~DimArithmetic() = default;
  virtual T number(std::int64_t value) = 0;
  virtual T symbol(const std::string& name) = 0;
  virtual T add(T a, T b) = 0;
  virtual T multiply(T a, T b) = 0;
  virtual T floor_divide(T a, T b) = 0;
  virtual T minimum(T a, T b) = 0;
  virtual T maximum(T a, T b) = 0;
};

/// Sums, products and atoms of a dim as a plain expression tree.
struct DimTree {
  enum class Kind : std::uint8_t { Number, Symbol, Add, Multiply, FloorDivide, Minimum, Maximum };
  Kind kind = Kind::Number;
  std::int64_t number = 0;
  std::string symbol;
  std::vector<DimTree> args;
};
DimTree tree_of(const Dim& dim);

template <class T>
T fold(const DimTree& tree, DimArithmetic<T>& to) {
  if (tree.kind == DimTree::Kind::Number) return to.number(tree.number);
  if (tree.kind == DimTree::Kind::Symbol) return to.symbol(tree.symbol);
  T total = fold(tree.args[0], to);
  for (std::size_t k = 1; k < tree.args.size(); ++k) {
    T next = fold(tree.args[k], to);
    switch (tree.kind) {
      case DimTree::Kind::Add:
        total = to.add(std::move(total), std::move(next));
        break;
      case DimTree::Kind::Multiply:
        total = to.multiply(std::move(total), std::move(next));
        break;
      case DimTree::Kind::FloorDivide:
        total = to.floor_divide(std::move(total), std::move(next));
        break;
      case DimTree::Kind::Minimum:
        total = to.minimum(std::move(total), std::move(next));
        break;
      default:
        total = to.maximum(std::move(total), std::move(next));
        break;
    }
  }
  return total;
}

}  // namespace tenon::inline ir
