#include "ir/assumptions.h"
#include "ops/definition/same_elements.h"

#include <algorithm>

namespace tenon::inline ops::squeeze_op {
namespace {

struct Attrs {
  std::vector<std::int64_t> axes;  // empty: every axis of extent 1
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const TensorType& x = in["x"];
  TensorType y{x.dtype, {}, {}};
  if (attrs.axes.empty()) {
    for (const Dim& extent : x.dims) {
      // A query without an assumption: a symbol that may be 1 at run time makes the rank unknown.
      if (!extent.is_constant() && !provably_different(extent, 1))
        throw OperandTypes::NotKnownYet{};
      if (extent != Dim(1)) y.dims.push_back(extent);
    }
    return y;
  }
  const std::vector<std::int64_t> axes = normal_axes("squeeze", attrs.axes, x.rank());
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(axis))) {
      y.dims.push_back(x.dims[axis]);
    } else if (!assume_equal(x.dims[axis], 1)) {
      throw Error("squeeze: an axis to drop has more than one position")
          .expected("extent 1 at axis ", axis)
          .got(x);
    }
  }
  return y;
}

}  // namespace

TENON_DEFINE_OP(squeeze) =
    with_examples({"x: T a 1 b; axes = 1"},
                  same_elements_op<Attrs>("squeeze", "drops axes of extent 1: those named, or all",
                                          {{"axes", &Attrs::axes, dynamic}}, infer));

}  // namespace tenon::inline ops::squeeze_op
