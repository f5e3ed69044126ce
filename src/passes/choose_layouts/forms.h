#pragma once

#include "ir/graph.h"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon::layouts {

using Axes = std::vector<std::int64_t>;

/// The two forms an image can have: channels first and channels last, and how one becomes the
/// other. `from` is the one graphs come in, `to` the one that is wanted; a value that is moved has
/// its axes permuted the same way as every other value of its rank, whatever they mean.
class Forms {
 public:
  /// `to` is "NHWC" (channels last) or "NCHW" (channels first).
  explicit Forms(std::string_view to);

  static bool has_rank(std::size_t rank) { return rank >= 3 && rank <= 5; }
  const Layout& from(std::size_t rank) const { return of(rank).from; }
  const Layout& to(std::size_t rank) const { return of(rank).to; }
  /// Axis k of the moved form is axis perm[k] of the other; `back` leads the other way.
  const Axes& perm(std::size_t rank) const { return of(rank).perm; }
  const Axes& back(std::size_t rank) const { return of(rank).back; }
  /// Without a layout axes are in logical order, which is channels first.
  bool has_bare_images() const { return has_bare_images_; }
  /// "channels last"
  std::string_view words() const;

  /// A tensor of rank 3, 4 or 5 that may be in the form `from`.
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
/// Whether the elements stay where they are: only axes of extent 1 change places.
bool keeps_elements_in_place(const Dims& dims, const Axes& perm);
/// `dims` with ones before them up to that rank, as broadcasting aligns them.
Dims widened(const Dims& dims, std::size_t rank);
Dims to_dims(const Axes& axes);

}  // namespace tenon::layouts
