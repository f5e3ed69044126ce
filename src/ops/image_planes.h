#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

/// One component of a JPEG image: samples row by row.
class SamplePlane {
 public:
  SamplePlane() = default;
  SamplePlane(std::int64_t height, std::int64_t width)
      : height_(height), width_(width), samples_(static_cast<std::size_t>(height * width)) {}

  std::uint8_t at(std::int64_t row, std::int64_t column) const {
    return samples_[static_cast<std::size_t>(row * width_ + column)];
  }
  void set(std::int64_t row, std::int64_t column, std::uint8_t value) {
    samples_[static_cast<std::size_t>(row * width_ + column)] = value;
  }
  SamplePlane cropped(std::int64_t height, std::int64_t width) const;
  /// Brought to the image's size: by 2 across, and by 1 or 2 down, with a triangular filter (as
  /// most decoders do); by other factors with the nearest sample.
  SamplePlane widened(std::int64_t height, std::int64_t width, std::int64_t down,
                      std::int64_t across) const;

 private:
  std::int64_t height_ = 0, width_ = 0;
  std::vector<std::uint8_t> samples_;
};

/// The colour of a luma and two centred chroma values (ITU-R BT.601, full range).
void put_rgb(std::uint8_t* rgb, int luma, int blue_chroma, int red_chroma);

}  // namespace tenon
