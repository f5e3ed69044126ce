#pragma once

#include "nests/loop_nest.h"

#include <map>
#include <optional>
#include <vector>

namespace tenon::nests {

/// Where an element of a buffer is read or written.
struct ElementAccess {
  enum class Kind : std::uint8_t { Load, Store, Update };
  Kind kind = Kind::Load;
  std::size_t buffer = 0;
  Bounds bounds = Bounds::Inside;
  const Dims* view = nullptr;
  std::vector<Scalar> indices;
  /// around it, outermost first
  std::vector<const Statement*> loops;
  /// of its statement in the text
  std::size_t order = 0;
};

/// Every access of a nest, in the order of the text: what a statement reads comes before what it
/// writes.
std::vector<ElementAccess> accesses_of(const LoopNest& nest);

/// An integer that grows evenly with loops, from an extent on.
struct AffineDim {
  std::map<std::size_t, std::int64_t> steps;
  Dim start = 0;
};
std::optional<AffineDim> affine_dim_of(const LoopNest& nest, const Scalar& scalar);

/// The place in the buffer, its view row-major; nothing where that is not affine.
std::optional<AffineDim> place_of(const LoopNest& nest, const ElementAccess& access);

/// The greatest and the least value while the loops run, which are all that the value depends on.
/// Where a loop has a limit of the form (width min (count - first)) that is counted with. Nothing
/// where it cannot be told.
std::optional<Dim> greatest(const LoopNest& nest, const AffineDim& value,
                            const std::vector<const Statement*>& loops);
std::optional<Dim> least(const AffineDim& value, const std::vector<const Statement*>& loops);

}  // namespace tenon::nests
