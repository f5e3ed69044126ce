#pragma once

#include "ops/gradient.h"
#include "ops/lowering.h"
#include "ops/op_spec.h"

#include <string>
#include <string_view>
#include <utility>

namespace tenon {

/// Where the position inside a block lies among the channels: before the depth (depth last, as
/// "depth, column, row" counts from the fastest axis) or behind it.
enum class BlockOrder { Dcr, Crd };

struct DepthSpaceAttrs {
  std::int64_t block = 1;
  BlockOrder mode = BlockOrder::Dcr;
};

/// Refuses what is not of rank 4, and blocks of no sensible size.
void require_block(std::string_view op, const DepthSpaceAttrs& attrs, const TensorType& x);
/// Refuses an axis whose extent is provably no multiple of the divisor.
void require_multiple(std::string_view op, const TensorType& x, std::size_t axis,
                      std::int64_t divisor);

/// An op x → y with these attributes.
OpSpec<DepthSpaceAttrs> depth_space_op(std::string name, std::string summary,
                                       InferRule<DepthSpaceAttrs> infer,
                                       void (*lower)(const DepthSpaceAttrs&, Lowering&),
                                       GradientRule<DepthSpaceAttrs> gradient);
/// The gradient of a rearrangement: the op that puts everything back.
void undo(std::string_view inverse, const DepthSpaceAttrs& attrs, Gradient& op);

}  // namespace tenon
