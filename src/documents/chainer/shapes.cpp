#include "documents/chainer/shapes.h"

#include "base/error.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::documents::chainer {

std::int64_t PartialShapes::extent(std::size_t variable, std::size_t axis) const {
  const Entry& entry = variables_[variable];
  return entry.has_rank && axis < entry.extents.size() ? entry.extents[axis] : kUnknown;
}

bool PartialShapes::refuse(std::size_t variable, std::string reason) {
  conflict_ = {variable, std::move(reason)};
  return false;
}

bool PartialShapes::set_rank(std::size_t variable, std::size_t rank) {
  Entry& entry = variables_[variable];
  if (entry.has_rank) {
    if (entry.extents.size() == rank) return true;
    return refuse(variable,
                  concat("has ", entry.extents.size(), " axes and ", rank, " are needed"));
  }
  entry.has_rank = true;
  entry.extents.assign(rank, kUnknown);
  entry.unknown = rank;
  trail_.push_back({variable, kRankStep});
  changed_.push_back(variable);
  return follow_count(variable);
}

bool PartialShapes::set_extent(std::size_t variable, std::size_t axis, std::int64_t extent) {
  Entry& entry = variables_[variable];
  if (!entry.has_rank || axis >= entry.extents.size()) return refuse(variable, "has too few axes");
  std::int64_t& known = entry.extents[axis];
  if (known == extent) return true;
  if (known != kUnknown || extent < 0) {
    return refuse(variable, known == kUnknown ? "would have a negative extent"
                                              : concat("has extent ", known, " along axis ", axis,
                                                       " and needs ", extent));
  }
  known = extent;
  --entry.unknown;
  trail_.push_back({variable, axis});
  changed_.push_back(variable);
  return follow_count(variable);
}

bool PartialShapes::set_shape(std::size_t variable, const Shape& shape) {
  if (!set_rank(variable, shape.size())) return false;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!set_extent(variable, axis, shape[axis])) return false;
  }
  return true;
}

// The known extents must divide the count; the last unknown extent is the quotient.
bool PartialShapes::follow_count(std::size_t variable) {
  Entry& entry = variables_[variable];
  if (!entry.count) return true;
  if (*entry.count == 0) {
    // A zero extent leaves the others undetermined.
    const bool has_zero =
        std::find(entry.extents.begin(), entry.extents.end(), 0) != entry.extents.end();
    return entry.unknown > 0 || has_zero ||
           refuse(variable, "its extents make other than 0 elements");
  }
  std::int64_t rest = *entry.count;
  for (const std::int64_t extent : entry.extents) {
    if (extent == kUnknown) continue;
    if (extent == 0 || rest % extent != 0) {
      return refuse(variable, concat(*entry.count, " elements do not make an extent of ", extent));
    }
    rest /= extent;
  }
  if (entry.unknown == 0) {
    if (rest == 1) return true;
    return refuse(variable, concat("its extents make other than ", *entry.count, " elements"));
  }
  if (entry.unknown > 1 && rest != 1) return true;
  for (std::size_t axis = 0; axis < entry.extents.size(); ++axis) {
    if (entry.extents[axis] != kUnknown) continue;
    entry.extents[axis] = rest;
    --entry.unknown;
    trail_.push_back({variable, axis});
  }
  changed_.push_back(variable);
  return true;
}

bool PartialShapes::same_extent(std::size_t a, std::size_t a_axis, std::size_t b,
                                std::size_t b_axis) {
  if (const std::int64_t known = extent(a, a_axis); known != kUnknown) {
    return rank(b) < 0 || set_extent(b, b_axis, known);
  }
  if (const std::int64_t known = extent(b, b_axis); known != kUnknown) {
    return rank(a) < 0 || set_extent(a, a_axis, known);
  }
  return true;
}

bool PartialShapes::same_rank(std::size_t a, std::size_t b) {
  if (rank(a) >= 0) return set_rank(b, static_cast<std::size_t>(rank(a)));
  if (rank(b) >= 0) return set_rank(a, static_cast<std::size_t>(rank(b)));
  return true;
}

bool PartialShapes::same_shape(std::size_t a, std::size_t b) {
  if (variables_[a].count && variables_[b].count && variables_[a].count != variables_[b].count) {
    return refuse(
        b, concat("has ", *variables_[b].count, " elements and needs ", *variables_[a].count));
  }
  if (!same_rank(a, b)) return false;
  for (int axis = 0; axis < rank(a); ++axis) {
    const auto position = static_cast<std::size_t>(axis);
    if (!same_extent(a, position, b, position)) return false;
  }
  return true;
}

std::vector<std::size_t> PartialShapes::take_changed() { return std::exchange(changed_, {}); }

void PartialShapes::undo_to(std::size_t mark) {
  changed_.clear();
  while (trail_.size() > mark) {
    const Assignment step = trail_.back();
    trail_.pop_back();
    Entry& entry = variables_[step.variable];
    if (step.axis == kRankStep) {
      entry.has_rank = false;
      entry.extents.clear();
      entry.unknown = 0;
    } else {
      entry.extents[step.axis] = kUnknown;
      ++entry.unknown;
    }
  }
}

namespace {

// Trial division stops here; the remaining factor counts as prime.
constexpr std::int64_t kLargestFactor = 1 << 14;

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> divisors{1};
  const auto multiply = [&](std::int64_t prime, int power) {
    const std::size_t before = divisors.size();
    std::int64_t factor = 1;
    for (int k = 0; k < power; ++k) {
      factor *= prime;
      for (std::size_t d = 0; d < before; ++d) divisors.push_back(divisors[d] * factor);
    }
  };
  for (std::int64_t prime = 2; prime * prime <= number && prime <= kLargestFactor; ++prime) {
    int power = 0;
    while (number % prime == 0) {
      number /= prime;
      ++power;
    }
    if (power > 0) multiply(prime, power);
  }
  if (number > 1) multiply(number, 1);
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// Enumerates factorizations of `rest` over the `open` axes, from `first` on.
class Factorizations {
 public:
  Factorizations(Shape shape, std::vector<std::size_t> open, std::int64_t rest, std::size_t limit)
      : shape_(std::move(shape)),
        open_(std::move(open)),
        divisors_(divisors_of(rest)),
        limit_(limit) {}

  // Collects factorizations with equal last extents, or all of them.
  void collect(std::int64_t rest, bool alike) {
    is_alike_ = alike;
    fill(0, rest);
  }
  std::vector<Shape> take() { return std::move(found_); }

 private:
  // Recursion depth is the number of axes.
  void fill(std::size_t next, std::int64_t rest) {
    if (found_.size() >= limit_) return;
    if (is_alike_ && next + 2 == open_.size()) {
      const auto found =
          std::lower_bound(divisors_.begin(), divisors_.end(), rest,
                           [](std::int64_t d, std::int64_t r) { return d <= r / d && d * d < r; });
      if (found == divisors_.end() || *found * *found != rest) return;
      shape_[open_[next]] = shape_[open_[next + 1]] = *found;
      found_.push_back(shape_);
      return;
    }
    if (next + 1 == open_.size()) {
      shape_[open_[next]] = rest;
      if (!is_alike_ || open_.size() < 2) found_.push_back(shape_);
      return;
    }
    for (const std::int64_t divisor : divisors_) {
      if (divisor > rest) break;
      if (rest % divisor != 0) continue;
      shape_[open_[next]] = divisor;
      fill(next + 1, rest / divisor);
    }
  }

  Shape shape_;
  std::vector<std::size_t> open_;
  std::vector<std::int64_t> divisors_;
  std::size_t limit_;
  bool is_alike_ = false;
  std::vector<Shape> found_;
};

}  // namespace

std::vector<Shape> completions(const Shape& partial, std::int64_t count, std::size_t limit) {
  std::vector<std::size_t> open;
  std::int64_t rest = count;
  for (std::size_t axis = 0; axis < partial.size(); ++axis) {
    if (partial[axis] == PartialShapes::kUnknown) {
      open.push_back(axis);
    } else if (partial[axis] == 0 || rest % partial[axis] != 0) {
      return {};
    } else {
      rest /= partial[axis];
    }
  }
  if (open.empty() || rest <= 0) return {};
  const bool ends_open = open.size() >= 2 && open[open.size() - 2] + 2 == partial.size();
  std::vector<Shape> all;
  if (ends_open) {
    Factorizations alike(partial, open, rest, limit);
    alike.collect(rest, true);
    all = alike.take();
  }
  Factorizations others(partial, open, rest, limit);
  others.collect(rest, false);
  std::vector<Shape> unlike = others.take();
  if (ends_open) {
    std::erase_if(unlike,
                  [](const Shape& shape) { return shape[shape.size() - 2] == shape.back(); });
    std::stable_sort(unlike.begin(), unlike.end(), [](const Shape& a, const Shape& b) {
      return std::llabs(a[a.size() - 2] - a.back()) < std::llabs(b[b.size() - 2] - b.back());
    });
  }
  all.insert(all.end(), unlike.begin(), unlike.end());
  if (all.size() > limit) all.resize(limit);
  return all;
}

}  // namespace tenon::documents::chainer
