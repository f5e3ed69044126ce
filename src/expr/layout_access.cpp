#include "expr/layout_access.h"

#include "base/error.h"
#include "ir/assumptions.h"

namespace tenon::inline expr {
namespace {

constexpr std::string_view spatial_letters = "DHW";

char inner_letter(char letter) { return static_cast<char>(letter - 'A' + 'a'); }

}  // namespace

LogicalIndex::LogicalIndex(Expr outer_index, Expr inner_index, Dim extent)
    : whole(outer_index * extent + inner_index),
      outer(std::move(outer_index)),
      inner(std::move(inner_index)),
      inner_extent(std::move(extent)) {}

LogicalIndex AxisLoops::index(const Space& space) const {
  if (!inner) return space[outer];
  return {space[outer], space[*inner], inner_extent};
}

AxisMap::AxisMap(std::string_view op, const TensorType& type, std::string_view leading)
    : AxisMap(op, type.layout, type.rank(), leading) {
  if (physical_rank_ == type.rank()) return;
  throw Error(concat(op, ": the layout's rank is not the tensor's")).got(type);
}

AxisMap::AxisMap(std::string_view op, const Layout& layout, std::size_t rank,
                 std::string_view leading) {
  if (layout.is_empty()) {
    for (std::size_t axis = 0; axis < rank; ++axis) places_.push_back({axis, {}, 1});
    physical_rank_ = rank;
    return;
  }
  const auto place = [&](char letter) {
    const auto axis = layout.axis(letter);
    if (axis) places_.push_back({*axis, layout.axis(inner_letter(letter)), layout.block(letter)});
    return axis.has_value();
  };
  for (char letter : leading) {
    if (place(letter)) continue;
    throw Error(concat(op, ": layout lacks axis ", std::string(1, letter)))
        .expected("axes ", leading, " and any of ", spatial_letters)
        .got(layout.text());
  }
  for (char letter : spatial_letters) place(letter);
  physical_rank_ = layout.rank();
  std::size_t named = 0;
  for (const AxisPosition& found : places_) named += found.inner ? 2 : 1;
  if (named != physical_rank_) {
    throw Error(concat(op, ": layout has an axis of another kind"))
        .expected("axes ", leading, " and any of ", spatial_letters)
        .got(layout.text());
  }
}

Dims AxisMap::logical_dims(const Dims& physical) const {
  Dims dims;
  for (const AxisPosition& place : places_) dims.push_back(physical[place.axis] * Dim(place.block));
  return dims;
}

Dims AxisMap::physical_dims(std::string_view op, const Dims& logical) const {
  Dims dims(physical_rank_);
  for (std::size_t k = 0; k < places_.size(); ++k) {
    const AxisPosition& place = places_[k];
    if (!assume_multiple(logical[k], place.block)) {
      throw Error(concat(op, ": an axis does not divide into the layout's blocks"))
          .expected("a multiple of ", place.block)
          .got(logical[k]);
    }
    dims[place.axis] = floor_div(logical[k], place.block);
    if (place.inner) dims[*place.inner] = place.block;
  }
  return dims;
}

std::vector<Expr> AxisMap::coordinates(const std::vector<LogicalIndex>& indices) const {
  TENON_ASSERT(indices.size() == places_.size(), "there is an index for each logical axis");
  std::vector<Expr> coordinates(physical_rank_);
  for (std::size_t k = 0; k < places_.size(); ++k) {
    const AxisPosition& place = places_[k];
    const LogicalIndex& index = indices[k];
    if (!place.inner) {
      coordinates[place.axis] = index.whole;
    } else if (index.inner.is_defined() && index.inner_extent == Dim(place.block)) {
      coordinates[place.axis] = index.outer;
      coordinates[*place.inner] = index.inner;
    } else {
      coordinates[place.axis] = floor_div(index.whole, Dim(place.block));
      coordinates[*place.inner] = mod(index.whole, Dim(place.block));
    }
  }
  return coordinates;
}

Expr AxisMap::along(std::size_t logical_axis, const Expr& values) const {
  const AxisPosition& place = places_[logical_axis];
  Dims dims(physical_rank_, 1);
  dims[place.axis] = floor_div(values.extent(0), place.block);
  if (place.inner) dims[*place.inner] = place.block;
  return reshape(values, std::move(dims));
}

std::vector<std::int64_t> AxisMap::axes_without(std::size_t logical_axis) const {
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 0; axis < physical_rank_; ++axis) {
    const AxisPosition& place = places_[logical_axis];
    if (place.axis != axis && place.inner != axis) axes.push_back(static_cast<std::int64_t>(axis));
  }
  return axes;
}

std::vector<AxisLoops> AxisMap::loops(Dims& dims, const Dims& logical,
                                      const Dims& inner_extents) const {
  std::vector<AxisLoops> all(places_.size());
  const auto add = [&](const Dim& extent) {
    dims.push_back(extent);
    return dims.size() - 1;
  };
  for (std::size_t axis = 0; axis < physical_rank_; ++axis) {
    for (std::size_t k = 0; k < places_.size(); ++k) {
      const AxisPosition& place = places_[k];
      if (place.inner == axis) all[k].inner = add(place.block);
      if (place.axis != axis) continue;
      if (place.inner) {
        all[k] = {add(floor_div(logical[k], place.block)), {}, place.block};
      } else if (!inner_extents.empty() && !(inner_extents[k] == Dim(1))) {
        const std::size_t outer = add(floor_div(logical[k], inner_extents[k]));
        all[k] = {outer, add(inner_extents[k]), inner_extents[k]};
      } else {
        all[k] = {add(logical[k]), {}, 1};
      }
    }
  }
  return all;
}

Layout chosen_layout(const std::string& out_layout, const Layout& otherwise) {
  return out_layout.empty() ? otherwise : Layout(out_layout);
}

Layout layout_to_ask(const TensorType& wanted, const Layout& from, std::string_view leading) {
  if (!wanted.layout.is_empty() || from.is_empty()) return wanted.layout;
  const std::size_t spatial = wanted.rank() - leading.size();
  TENON_ASSERT(spatial <= spatial_letters.size(), "a layout names at most three spatial axes");
  const std::string_view last = spatial_letters.substr(spatial_letters.size() - spatial);
  return Layout(concat(leading, last));
}

}  // namespace tenon::inline expr
