#pragma once

#include "ir/constant.h"

#include <optional>
#include <vector>

// Weights multiplied by scales.
namespace tenon::passes::scales {

/// Factors of a tensor's elements: one number per position along one axis, or per pair of positions
/// along two axes.
struct ChannelFactors {
  std::size_t axis = 0;
  /// before or after the first axis
  std::optional<std::size_t> second;
  /// by position along `axis`, then `second`
  std::vector<double> table;
};
/// Returns the elements times their factors; large constants keep the factors and are multiplied on
/// demand. Returns nullopt if a product would overflow or underflow to zero, because results for
/// infinite data would change.
std::optional<Constant> scaled(const Constant& constant, const ChannelFactors& factors);

}  // namespace tenon::passes::scales
