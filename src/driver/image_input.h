#pragma once

#include "ir/tensor.h"

#include <string>
#include <vector>

namespace tenon {

/// How pixels become numbers: (pixel - mean) * scale, pixels from 0 to 255. One number for all
/// channels or one for each of red, green and blue.
struct PixelSettings {
  std::vector<double> mean = {0}, scale = {1};
};

/// Whether a file's name is that of an image.
bool is_image_file(const std::string& path);

/// The image in a file as an input of that type and shape takes it: [N, C, H, W] or [N, H, W, C]
/// of one or three channels, with or without N, which is 1. It is scaled to H and W by linear
/// interpolation where it has another size. Throws Error for a file that is no image and (Usage)
/// for a shape that is no image's.
Tensor read_image_input(const std::string& path, DType dtype, const Shape& shape,
                        const PixelSettings& settings = {});

}  // namespace tenon
