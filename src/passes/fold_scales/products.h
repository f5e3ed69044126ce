#pragma once

#include "ir/constant.h"

#include <optional>
#include <vector>

// Weights times scales.
namespace tenon::scales {

/// What the elements of a tensor are multiplied by: one number for each position along one axis,
/// or for each pair of positions along two.
struct Factors {
  std::size_t axis = 0;
  /// behind the first or before it
  std::optional<std::size_t> second;
  /// by position along `axis`, then `second`
  std::vector<double> table;
};
/// The elements times their factors; many of them are only multiplied when somebody asks for them.
/// Nothing where one would overflow, or be zero without need: what infinite data gives would
/// change.
std::optional<Constant> scaled(const Constant& constant, const Factors& factors);

}  // namespace tenon::scales
