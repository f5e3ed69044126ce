#pragma once

#include "documents/relay/export_node.h"

#include <string>

namespace tenon::documents::relay {

/// Relay's attributes of an image: layout and spatial axes.
struct ImageText {
  std::string layout;
  /// spatial axes
  std::size_t count = 2;
  /// of those, in the order D, H, W
  Dims extents;
};
/// Refuses images without one to three spatial axes.
ImageText image_text(const ExportNode& node, const TensorType& image);

/// Windows over an image, with all numbers explicit.
struct WindowText {
  Integers strides, dilations, pads, output_padding;
};
WindowText window_text(const ExportNode& node, const ImageText& image, const Integers& kernel);

/// Adds `out_layout` if the result's layout differs from the image's.
void add_out_layout(const ImageText& image, const TensorType& result,
                    std::vector<ExprBuilder::Named>& attrs);

}  // namespace tenon::documents::relay
