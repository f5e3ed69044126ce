#pragma once

#include "nests/loop_nest.h"

#include <map>
#include <optional>
#include <vector>

namespace tenon::nests {

/// One load, store or update of a buffer element.
struct ElementAccess {
  enum class Kind : std::uint8_t { Load, Store, Update };
  Kind kind = Kind::Load;
  std::size_t buffer = 0;
  Bounds bounds = Bounds::Inside;
  const Dims* view = nullptr;
  std::vector<Scalar> indices;
  /// Enclosing loops, outermost first.
  std::vector<const Statement*> loops;
  /// Position of its statement in the text.
  std::size_t order = 0;
};

/// Returns all accesses of a nest in text order; the loads of a statement precede its store.
std::vector<ElementAccess> accesses_of(const LoopNest& nest);

/// An affine function of loops, with a symbolic offset.
struct AffineDim {
  std::map<std::size_t, std::int64_t> steps;
  Dim start = 0;
};
std::optional<AffineDim> affine_dim_of(const LoopNest& nest, const Scalar& scalar);

/// Returns the flat row-major position in the buffer; no value if it is not affine.
std::optional<AffineDim> place_of(const LoopNest& nest, const ElementAccess& access);

/// Returns the maximum and minimum over all iterations of `loops`, which must include every loop of
/// the value. Limits that are affine, or minima of such, are taken into account. No value if
/// unknown.
std::optional<Dim> greatest(const LoopNest& nest, const AffineDim& value,
                            const std::vector<const Statement*>& loops);
std::optional<Dim> least(const AffineDim& value, const std::vector<const Statement*>& loops);

/// Return whether a loop provably has no iteration, or at least one, in every iteration of `loops`,
/// its enclosing loops.
bool never_runs(const LoopNest& nest, const Statement& loop,
                const std::vector<const Statement*>& loops);
bool always_runs(const LoopNest& nest, const Statement& loop,
                 const std::vector<const Statement*>& loops);

}  // namespace tenon::nests
