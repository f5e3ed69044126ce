#pragma once

#include "ir/graph.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon::passes::layouts {

using Axes = std::vector<std::int64_t>;

/// The two layouts of an image, channels first and channels last, and the permutations between
/// them. `from` is the layout of the incoming graph, `to` the layout to convert to. A moved value
/// has its axes permuted like every other value of its rank, whatever its axes mean.
class Forms {
 public:
  /// `to` is "NHWC" (channels last) or "NCHW" (channels first).
  explicit Forms(std::string_view to);

  static bool has_rank(std::size_t rank) { return rank >= 3 && rank <= 5; }
  const Layout& from(std::size_t rank) const { return of(rank).from; }
  const Layout& to(std::size_t rank) const { return of(rank).to; }
  /// Axis k of the `to` layout is axis perm[k] of the `from` layout; `back` is the inverse.
  const Axes& perm(std::size_t rank) const { return of(rank).perm; }
  const Axes& back(std::size_t rank) const { return of(rank).back; }
  /// Returns whether a value without a layout may be an image: its axes are in logical order, which
  /// is channels first.
  bool has_bare_images() const { return has_bare_images_; }
  /// Returns the name of `to`, such as "channels last".
  std::string_view words() const;

  /// Returns whether the type is a tensor of rank 3, 4 or 5 that may have the layout `from`.
  bool may_be_from(const TensorType& type) const;
  TensorType moved(const TensorType& type) const;

 private:
  struct Pair {
    Layout from, to;
    Axes perm, back;
  };
  const Pair& of(std::size_t rank) const { return pairs_[rank - 3]; }
  std::array<Pair, 3> pairs_;
  bool has_bare_images_ = false;
};

Dims permuted(const Dims& dims, const Axes& perm);
/// Returns whether the permutation only moves axes of extent 1, so that memory stays as it is.
bool keeps_elements_in_place(const Dims& dims, const Axes& perm);
/// Returns `dims` with ones prepended up to that rank, as broadcasting aligns them.
Dims widened(const Dims& dims, std::size_t rank);
Dims to_dims(const Axes& axes);

}  // namespace tenon::passes::layouts
