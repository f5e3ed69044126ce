#include "codegen/packing.h"

#include <cstring>

#include "base/error.h"
#include "codegen/lines.h"

namespace tenon::codegen {

void pack(const Packing& packing, const Tensor& tensor, std::byte* target) {
  const std::size_t bytes = info(tensor.dtype()).storage_bytes, rank = packing.loops.size();
  const std::vector<std::int64_t> source = constants(packing.source_dims);
  std::vector<std::int64_t> strides(rank, 0);
  std::int64_t base = 0, stride = 1;
  for (std::size_t axis = source.size(); axis-- > 0; stride *= source[axis]) {
    const auto line = line_of(packing.coordinates[axis]);
    TENON_ASSERT(line, "what is packed is read evenly");
    for (std::size_t k = 0; k < rank; ++k) {
      const auto step = line->steps.find(packing.loops[k]);
      if (step != line->steps.end()) strides[k] += step->second * stride;
    }
    base += line->start * stride;
  }
  const std::int64_t width = packing.extents.back(), column_stride = strides.back();
  std::vector<std::int64_t> at(rank - 1, 0);
  const std::byte* elements = tensor.bytes().data();
  for (;;) {
    std::int64_t offset = base;
    for (std::size_t k = 0; k + 1 < rank; ++k) offset += at[k] * strides[k];
    for (std::int64_t column = 0; column < width; ++column, target += bytes) {
      if (at[0] * width + column < packing.limit) {
        std::memcpy(target, elements + static_cast<std::size_t>(offset + column * column_stride) * bytes, bytes);
      }
    }
    std::size_t k = rank - 1;
    while (k > 0 && ++at[k - 1] == packing.extents[k - 1]) at[--k] = 0;
    if (k == 0) return;
  }
}

}  // namespace tenon::codegen
