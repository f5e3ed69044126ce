#include "ops/definition/operand_shapes.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/assumptions.h"

namespace tenon::inline ops {

void require_dims(std::string_view op, std::string_view operand, const TensorType& type,
                  const Dims& dims) {
  bool fits = type.rank() == dims.size();
  for (std::size_t k = 0; fits && k < dims.size(); ++k) {
    fits = assume_equal(type.dims[k], dims[k]);
  }
  if (fits) return;
  throw Error(concat(op, ": operand '", operand, "' has the wrong shape")).expected(dims).got(type);
}

void require_broadcasts_to(std::string_view op, std::string_view operand, const TensorType& type,
                           const Dims& dims) {
  bool fits = type.rank() <= dims.size();
  for (std::size_t k = 0; fits && k < type.rank(); ++k) {
    const Dim& extent = type.dims[k];
    fits = assume_one_or(extent, dims[dims.size() - type.rank() + k]);
  }
  if (fits) return;
  throw Error(concat(op, ": operand '", operand, "' has the wrong shape"))
      .expected("what broadcasts to ", dims)
      .got(type);
}

}  // namespace tenon::inline ops
