#include "documents/relay/window_export.h"

#include "base/error.h"
#include "documents/relay/window.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

Integers or_all(Integers numbers, std::size_t count, std::int64_t value) {
  if (numbers.empty()) numbers.assign(count, value);
  return numbers;
}

// Explicit pads for auto-pad modes and for the stated shape of a transposed convolution.
Integers resolved_pads(const ExportNode& node, const ImageText& image, const Integers& kernel,
                       const WindowText& window) {
  const std::string mode = node.text("auto_pad");
  const bool is_transposed = node.node().op->name == "conv_transpose";
  const Integers stated = is_transposed ? node.integers("output_shape") : Integers{};
  Integers pads = or_all(node.integers("pads"), 2 * image.count, 0);
  if (mode == "valid") pads.assign(2 * image.count, 0);
  const bool is_same = mode == "same_upper" || mode == "same_lower";
  if (!is_same && stated.empty()) return pads;
  for (std::size_t k = 0; k < image.count; ++k) {
    const std::int64_t extent = node.numbers({image.extents[k]}).front();
    const std::int64_t reach = (kernel[k] - 1) * window.dilations[k] + 1,
                       stride = window.strides[k];
    std::int64_t total = 0;
    if (is_transposed) {
      const std::int64_t wanted = stated.empty() ? extent * stride : stated[k];
      total = std::max<std::int64_t>(
          0, stride * (extent - 1) + window.output_padding[k] + reach - wanted);
    } else {
      const std::int64_t count = (extent + stride - 1) / stride;
      total = std::max<std::int64_t>(0, (count - 1) * stride + reach - extent);
    }
    const bool is_lower = mode == "same_lower" || (is_transposed && mode != "same_upper");
    const std::int64_t begin = is_lower ? total - total / 2 : total / 2;
    pads[k] = begin;
    pads[image.count + k] = total - begin;
  }
  return pads;
}

}  // namespace

ImageText image_text(const ExportNode& node, const TensorType& image) {
  ImageText text;
  std::size_t letters = 0;
  for (const char letter : {'D', 'H', 'W'}) letters += image.layout.axis(letter).has_value();
  if (image.layout.is_empty() && image.rank() < 3) throw node.unsupported("no spatial axes");
  text.count = image.layout.is_empty() ? image.rank() - 2 : letters;
  if (text.count < 1 || text.count > 3) throw node.unsupported(concat(text.count, " spatial axes"));
  text.layout = image.layout.is_empty() ? "NC" + spatial_letters(text.count) : image.layout.text();
  const Layout layout(text.layout);
  for (const char letter : spatial_letters(text.count)) {
    const auto axis = layout.axis(letter);
    if (!axis || layout.block(letter) != 1) throw node.unsupported(concat("layout ", text.layout));
    text.extents.push_back(image.dims[*axis]);
  }
  return text;
}

WindowText window_text(const ExportNode& node, const ImageText& image, const Integers& kernel) {
  WindowText window;
  window.strides = or_all(node.integers("strides"), image.count, 1);
  window.dilations = or_all(node.integers("dilations"), image.count, 1);
  if (node.node().op->find_attr("output_padding")) {
    window.output_padding = or_all(node.integers("output_padding"), image.count, 0);
  }
  window.pads = resolved_pads(node, image, kernel, window);
  return window;
}

void add_out_layout(const ImageText& image, const TensorType& result,
                    std::vector<ExprBuilder::Named>& attrs) {
  const std::string layout =
      result.layout.is_empty() ? "NC" + spatial_letters(image.count) : result.layout.text();
  if (layout != image.layout) attrs.push_back({"out_layout", layout});
}

}  // namespace tenon::documents::relay
