#include "ir/assumptions.h"
#include "ops/definition/same_elements.h"
#include "ops/families/movement.h"

#include <algorithm>

namespace tenon::inline ops::reshape_op {
namespace {

struct Attrs {
  Dims shape;               // -1: the remaining extent
  bool allow_zero = false;  // 0 means an empty axis instead of the operand's extent
};

[[noreturn]] void refuse_count(const TensorType& x, const Attrs& attrs) {
  throw Error("reshape: the number of elements changes")
      .expected(element_count(x), " elements")
      .got("x: ", x, ", shape: ", attrs.shape);
}

// a/b under the assumption that b is not zero, so that common factors cancel.
Dim quotient(const Dim& a, const Dim& b) {
  SymbolRanges symbols;
  if (!b.is_constant()) b.collect_symbols(symbols);
  DimBindings positive, given;
  for (const auto& [name, range] : symbols) {
    if (range.lo != 0 || range.hi < 1) continue;
    positive.emplace(name, Dim::symbol(name, {1, range.hi}));
    given.emplace(name, Dim::symbol(name, range));
  }
  return floor_div(a.substitute(positive), b.substitute(positive)).substitute(given);
}

Dim left_over(const Attrs& attrs, const OperandTypes& in, Dims others) {
  if (any_unknown(others)) return in.unknown();
  // Extents that stay unchanged do not constrain the open one, even if they are 0.
  Dims own = in["x"].dims;
  std::erase_if(others, [&](const Dim& extent) {
    const auto same = std::find(own.begin(), own.end(), extent);
    if (same == own.end()) return false;
    own.erase(same);
    return true;
  });
  const Dim count = product(own), taken = product(others);
  if (taken == Dim(0)) return 0;
  const Dim left = quotient(count, taken);
  if (!assume_equal(left * taken, count)) refuse_count(in["x"], attrs);
  return left;
}

// A symbol that is 0 at run time means the operand's extent, which then has to be 0 too.
bool assume_zero_copies(const Dim& extent, std::size_t axis, const TensorType& x) {
  if (is_unknown(extent)) return true;
  return assume_at_most(axis < x.rank() ? min(x.dims[axis], 1) : Dim(1), extent);
}

// Any extent would do for the open one.
void require_no_zero(const Attrs& attrs) {
  for (const Dim& extent : attrs.shape) {
    if (extent == Dim(-1) || is_unknown(extent) || assume_at_most(1, extent)) continue;
    throw Error("reshape: an extent of 0 leaves the open one undetermined").got(attrs.shape);
  }
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  Dims dims;
  std::optional<std::size_t> open;
  for (std::size_t axis = 0; axis < attrs.shape.size(); ++axis) {
    Dim extent = attrs.shape[axis];
    if (extent == Dim(-1)) {
      if (open) throw Error("reshape: more than one extent is left open").got(attrs.shape);
      open = axis;
      extent = 1;
    } else if (extent == Dim(0) && !attrs.allow_zero) {
      if (axis >= x.rank()) {
        throw Error("reshape: an extent of 0 copies an axis that the operand does not have")
            .got("x: ", x, ", shape: ", attrs.shape)
            .hint("set allow_zero to mean no elements");
      }
      extent = x.dims[axis];
    } else if (!assume_at_most(0, extent)) {
      throw Error("reshape: an extent is negative").got(attrs.shape);
    } else if (!extent.is_constant() && !attrs.allow_zero && !assume_zero_copies(extent, axis, x)) {
      throw Error("reshape: an extent of 0 copies an axis that the operand does not have")
          .got("x: ", x, ", shape: ", attrs.shape);
    }
    dims.push_back(std::move(extent));
  }
  if (open) {
    if (attrs.allow_zero) require_no_zero(attrs);
    dims[*open] = left_over(attrs, in, dims);
  } else if (!any_unknown(dims) && !assume_equal(element_count(x), product(dims))) {
    refuse_count(x, attrs);
  }
  return {x.dtype, std::move(dims), {}};
}

}  // namespace

TENON_DEFINE_OP(reshape) = with_examples(
    {"x: T a b c; shape = 0 -1", "x: T a b; shape = -1 a", "x: T a b c; shape = c -1 b",
     "x: T a b; shape = b 1 a", "x: T 4 6; shape = 2 2 -1"},
    same_elements_op<Attrs>(
        "reshape",
        "the same elements in row-major order under other extents; -1 stands for what is left",
        {{"shape", &Attrs::shape, dynamic_required}, {"allow_zero", &Attrs::allow_zero}}, infer));

}  // namespace tenon::inline ops::reshape_op
