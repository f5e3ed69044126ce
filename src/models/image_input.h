#pragma once

#include "ir/tensor.h"

#include <string>
#include <vector>

namespace tenon::models {

/// Pixel normalization: (pixel - mean) * scale, for pixels from 0 to 255. One number for all
/// channels, or one each for red, green and blue.
struct PixelSettings {
  std::vector<double> mean = {0}, scale = {1};
};

/// Returns whether a file name has the extension of an image format.
bool is_image_file(const std::string& path);

/// Reads an image file as an input of that type and shape: [N, C, H, W] or [N, H, W, C] with one or
/// three channels, with or without N, which is 1. Resizes it to H and W by bilinear interpolation.
/// Throws Error for a file that is not an image, and (Usage) for a shape that does not fit one.
Tensor read_image_input(const std::string& path, DType dtype, const Shape& shape,
                        const PixelSettings& settings = {});

}  // namespace tenon::models
