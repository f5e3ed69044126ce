#include "ops/families/indexing.h"

#include "ops/families/movement.h"

namespace tenon::inline ops {

void require_integer(std::string_view op, std::string_view operand, const TensorType& type) {
  if (is_integer(type.dtype)) return;
  throw Error(concat(op, ": operand '", operand, "' must hold integers")).got(type);
}

std::size_t index_depth(std::string_view op, const TensorType& indices) {
  require_integer(op, "indices", indices);
  if (indices.rank() == 0) throw Error(concat(op, ": 'indices' needs an axis of coordinates"));
  if (!indices.dims.back().is_constant()) throw OperandTypes::NotKnownYet{};
  return static_cast<std::size_t>(indices.dims.back().constant());
}

std::vector<Expr> indexed_coordinates(const Space& space, const Expr& indices, const Dims& dims,
                                      std::size_t batch) {
  const std::vector<Expr> own = space.indices();
  const auto outer = static_cast<std::ptrdiff_t>(indices.rank()) - 1;
  const auto depth = static_cast<std::size_t>(indices.dims().back().constant());
  std::vector<Expr> coordinates(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(batch));
  for (std::size_t k = 0; k < depth; ++k) {
    std::vector<Expr> place(own.begin(), own.begin() + outer);
    place.push_back(integer(static_cast<std::int64_t>(k)));
    coordinates.push_back(wrap_negative(indices.at(std::move(place)), dims[batch + k]));
  }
  coordinates.insert(coordinates.end(), own.begin() + outer, own.end());
  return coordinates;
}

FieldOptions scatter_words() { return words("none add mul max min"); }

Expr scatter_by(ScatterReduction reduction, const Expr& base, std::vector<Expr> coordinates,
                const Expr& updates) {
  constexpr Reduction folds[] = {Reduction::Last, Reduction::Sum, Reduction::Product,
                                 Reduction::Max, Reduction::Min};
  return scatter(folds[static_cast<std::size_t>(reduction)], base, std::move(coordinates), updates);
}

void scatter_gradient(ScatterReduction reduction, Gradient& op, std::string_view gather_op,
                      std::string_view scatter_op, const std::vector<Attr>& attrs) {
  if (reduction != ScatterReduction::None && reduction != ScatterReduction::Add) {
    throw Error(concat(scatter_op, ": only the reductions 'none' and 'add' have a gradient"),
                ErrorKind::Unsupported);
  }
  Builder& build = op.build();
  const Var dy = op.upstream("y"), indices = op.operand("indices");
  op.add("updates", build.call(gather_op, {dy, indices}, attrs));
  const bool overwrites = reduction == ScatterReduction::None;
  const Var zeros = zeros_like(op.operand("updates"));
  op.add("x", overwrites ? build.call(scatter_op, {dy, indices, zeros}, attrs) : dy);
}

}  // namespace tenon::inline ops
