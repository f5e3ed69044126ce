#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::documents::chainer {

/// Partial knowledge of every variable's shape during constraint propagation: ranks and extents,
/// each set at most once and undone in order. The bytes of a variable determine its last open
/// extent.
class PartialShapes {
 public:
  static constexpr std::int64_t kUnknown = -1;
  struct Conflict {
    std::size_t variable = 0;
    std::string reason;
  };

  explicit PartialShapes(std::size_t variable_count) : variables_(variable_count) {}

  /// Sets the element count derived from the variable's bytes; nullopt if the bytes are distrusted.
  void set_count(std::size_t variable, std::optional<std::int64_t> count) {
    variables_[variable].count = count;
  }
  std::optional<std::int64_t> count(std::size_t variable) const {
    return variables_[variable].count;
  }

  int rank(std::size_t variable) const {
    return variables_[variable].has_rank ? static_cast<int>(variables_[variable].extents.size())
                                         : -1;
  }
  /// kUnknown if the rank or the extent is unknown.
  std::int64_t extent(std::size_t variable, std::size_t axis) const;
  const Shape& extents(std::size_t variable) const { return variables_[variable].extents; }
  bool is_complete(std::size_t variable) const {
    return variables_[variable].has_rank && variables_[variable].unknown == 0;
  }

  /// Adds a fact. Returns false if it contradicts the known ones.
  bool set_rank(std::size_t variable, std::size_t rank);
  bool set_extent(std::size_t variable, std::size_t axis, std::int64_t extent);
  bool set_shape(std::size_t variable, const Shape& shape);
  bool same_extent(std::size_t a, std::size_t a_axis, std::size_t b, std::size_t b_axis);
  bool same_rank(std::size_t a, std::size_t b);
  bool same_shape(std::size_t a, std::size_t b);
  bool refuse(std::size_t variable, std::string reason);

  const Conflict& conflict() const { return conflict_; }
  /// Returns the variables with new facts since the last call.
  std::vector<std::size_t> take_changed();

  std::size_t mark() const { return trail_.size(); }
  void undo_to(std::size_t mark);

 private:
  struct Entry {
    std::optional<std::int64_t> count;
    bool has_rank = false;
    Shape extents;
    std::size_t unknown = 0;
  };
  struct Assignment {
    std::size_t variable, axis;  // axis kRankStep: the rank was set
  };
  static constexpr std::size_t kRankStep = static_cast<std::size_t>(-1);

  bool follow_count(std::size_t variable);

  std::vector<Entry> variables_;
  std::vector<Assignment> trail_;
  std::vector<std::size_t> changed_;
  Conflict conflict_;
};

/// Constraint of one function between the shapes of its inputs and outputs. Returns false if it is
/// violated.
using Relation = std::function<bool(PartialShapes&)>;

/// Returns at most `limit` completions of a shape whose extents multiply to `count`, most likely
/// first: equal last two axes, then small leading extents.
std::vector<Shape> completions(const Shape& partial, std::int64_t count, std::size_t limit);

}  // namespace tenon::documents::chainer
