#pragma once

#include "expr/lowering.h"
#include "ops/definition/gradient.h"
#include "ops/definition/op_spec.h"

#include <string>
#include <string_view>
#include <utility>

namespace tenon::inline ops {

/// Channel order of the position inside a block: before the depth (Dcr: depth, column, row, fastest
/// axis first) or after it (Crd).
enum class BlockOrder { Dcr, Crd };

struct DepthSpaceAttrs {
  std::int64_t block = 1;
  BlockOrder mode = BlockOrder::Dcr;
};

/// Requires rank 4 and a valid block size.
void require_block(std::string_view op, const DepthSpaceAttrs& attrs, const TensorType& x);
/// Refuses an axis whose extent is provably not divisible by the divisor.
void require_multiple(std::string_view op, const TensorType& x, std::size_t axis,
                      std::int64_t divisor);

/// Defines an op x → y with these attributes.
OpSpec<DepthSpaceAttrs> depth_space_op(std::string name, std::string summary,
                                       InferRule<DepthSpaceAttrs> infer,
                                       void (*lower)(const DepthSpaceAttrs&, Lowering&),
                                       GradientRule<DepthSpaceAttrs> gradient);
/// Adds the gradient of a rearrangement: the inverse op.
void undo(std::string_view inverse, const DepthSpaceAttrs& attrs, Gradient& op);

}  // namespace tenon::inline ops
