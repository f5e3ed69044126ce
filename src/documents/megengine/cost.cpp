#include "documents/megengine/cost.h"

#include <algorithm>

namespace tenon::documents::megengine {
namespace {

std::int64_t extent(const Extents& shape, std::size_t axis) {
  return axis < shape.size() ? shape[axis] : 0;
}

std::int64_t product(std::initializer_list<std::int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  std::int64_t result = 1;
  for (std::int64_t factor : factors) result = saturating_product(result, factor);
  return result;
}

// Channels per block of a packed format.
std::int64_t pack_width(std::string_view format) {
  if (format == "NCHW88") return 8;
  if (format == "NCHW32") return 32;
  if (format == "NCHW64") return 64;
  if (format == "NCHW4" || format == "NCHW44" || format == "NCHW44_DOT" || format == "CHWN4" ||
      format == "NHWCD4") {
    return 4;
  }
  return 1;
}

// One multiplication and one addition per filter element, over the channels of one group.
std::int64_t convolution(const Param& param, const Extents& source, const Extents& filter,
                         const Extents& result) {
  const std::string format = param.text("format", "NCHW");
  const bool is_grouped = param.text("sparse", "DENSE") == "GROUP";
  const std::int64_t pack = pack_width(format);
  std::size_t channel = 1, spatial = 2;
  if (format == "NHWC") {
    channel = 3;
    spatial = 1;
  } else if (format == "CHWN4") {
    channel = 0;
    spatial = 1;
  } else if (format == "NHWCD4") {
    channel = 2;
    spatial = 1;
  }
  // From unpacked to packed: the filter has no leading axis of inner channels, and the source is
  // unpacked.
  const bool is_hybrid = pack > 1 && !is_grouped && result.size() == 5 && source.size() == 4;
  if (is_hybrid) spatial = 1;
  std::int64_t groups = is_grouped ? extent(filter, 0) : 1;
  if (is_grouped) ++spatial;
  const bool is_channelwise =
      is_grouped && pack > 1 && extent(filter, 1) == 1 && extent(filter, 2) == 1;
  if (is_channelwise && (format == "NCHW88" || format == "NCHW44" || format == "NCHW44_DOT"))
    groups *= pack;
  if (groups <= 0) return 0;
  const std::int64_t products =
      product({count_of(result), extent(filter, spatial), extent(filter, spatial + 1),
               extent(source, channel), is_hybrid ? 1 : pack});
  return saturating_product(products / groups, 2);
}

}  // namespace

std::int64_t computation_of(std::string_view type, const Param& param,
                            std::span<const Extents> in_shapes,
                            std::span<const Extents> out_shapes) {
  const auto in = [&](std::size_t k) { return k < in_shapes.size() ? in_shapes[k] : Extents{}; };
  const Extents out = out_shapes.empty() ? Extents{} : out_shapes.front();
  const std::int64_t made = count_of(out);
  if (type == "Elemwise") {
    return saturating_product(
        made, static_cast<std::int64_t>(std::max<std::size_t>(in_shapes.size(), 2)) - 1);
  }
  if (type == "AddUpdate") return saturating_product(made, 3);
  if (type == "ConvolutionForward") return convolution(param, in(0), in(1), out);
  if (type == "ConvBiasForward" || type == "ConvBias") {
    return saturating_sum(convolution(param, in(0), in(1), out), in_shapes.size() == 3 ? made : 0);
  }
  if (type == "ConvolutionBackwardData") return convolution(param, out, in(0), in(1));
  if (type == "ConvolutionBackwardFilter") return convolution(param, in(0), in(2), in(1));
  if (type == "PoolingForward") {
    return product({made, param.integer("window_h", 1), param.integer("window_w", 1)});
  }
  if (type == "PoolingBackward") {
    return product({count_of(in(0)), param.integer("window_h", 1), param.integer("window_w", 1)});
  }
  if (type == "MatrixMul") {
    const bool is_transposed = param.boolean("transposeA", false);
    return product({made, extent(in(0), is_transposed ? 0 : 1), 2});
  }
  if (type == "Reduce") return count_of(in(0));
  if (type == "Concat" || type == "Dimshuffle" || type == "Host2DeviceCopy") return made;
  if (type == "DeformableConvForward" || type == "DeformableConvBackwardFilter" ||
      type == "DeformableConvBackwardData") {
    const std::size_t first = param.text("sparse", "DENSE") == "GROUP" ? 2 : 1;
    const Extents filter = in(1);
    return product({made, extent(filter, first), extent(filter, first + 1),
                    extent(filter, first + 2), type == "DeformableConvBackwardData" ? 12 : 3});
  }
  return 0;
}

}  // namespace tenon::documents::megengine
