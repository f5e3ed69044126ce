#include "nests/packing.h"

#include "base/error.h"
#include "nests/affine.h"

#include <algorithm>
#include <cstring>

namespace tenon::nests {

namespace {

// Addressing of one source axis.
struct PackedAxis {
  std::int64_t extent = 0, stride = 0, start = 0;
  std::vector<std::int64_t> steps;  // By loop of the packing.
};

bool is_inside(const PackedAxis& axis, std::int64_t position) {
  return position >= 0 && position < axis.extent;
}

}  // namespace

void pack(const Packing& packing, const Tensor& tensor, std::byte* target) {
  const std::size_t bytes = info(tensor.dtype()).storage_bytes, rank = packing.loops.size();
  const std::vector<std::int64_t> source = constants(packing.source_dims);
  std::vector<PackedAxis> axes(source.size());
  std::int64_t stride = 1;
  for (std::size_t axis = source.size(); axis-- > 0; stride *= source[axis]) {
    const auto affine = affine_of(packing.coordinates[axis]);
    TENON_ASSERT(affine, "what is packed is read evenly");
    axes[axis] = {source[axis], stride, affine->start, std::vector<std::int64_t>(rank, 0)};
    for (std::size_t k = 0; k < rank; ++k) {
      const auto step = affine->steps.find(packing.loops[k]);
      if (step != affine->steps.end()) axes[axis].steps[k] = step->second;
    }
  }
  const std::int64_t width = packing.extents.back();
  std::vector<std::int64_t> at(rank - 1, 0);
  const std::byte* elements = tensor.bytes().data();
  for (;;) {
    // The first of a row of columns, and the range of columns inside the source.
    std::int64_t offset = 0, column_stride = 0, begin = 0;
    std::int64_t end = std::clamp<std::int64_t>(packing.limit - at[0] * width, 0, width);
    for (const PackedAxis& axis : axes) {
      std::int64_t first = axis.start;
      for (std::size_t k = 0; k + 1 < rank; ++k) first += at[k] * axis.steps[k];
      offset += first * axis.stride;
      column_stride += axis.steps.back() * axis.stride;
      while (begin < end && !is_inside(axis, first + begin * axis.steps.back())) ++begin;
      while (begin < end && !is_inside(axis, first + (end - 1) * axis.steps.back())) --end;
    }
    for (std::int64_t column = begin; column < end; ++column) {
      std::memcpy(target + static_cast<std::size_t>(column) * bytes,
                  elements + static_cast<std::size_t>(offset + column * column_stride) * bytes,
                  bytes);
    }
    target += static_cast<std::size_t>(width) * bytes;
    std::size_t k = rank - 1;
    while (k > 0 && ++at[k - 1] == packing.extents[k - 1]) at[--k] = 0;
    if (k == 0) return;
  }
}

}  // namespace tenon::nests
