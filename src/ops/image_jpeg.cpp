// Baseline JPEG as in ITU-T T.81: Huffman coding, 8 bits, one or three components.
#include "ops/image.h"
#include "ops/image_planes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

namespace tenon {
namespace {

using Block = std::array<int, 64>;

// Where the k-th coefficient of a block lies, row by row.
constexpr std::array<std::uint8_t, 64> kZigZag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/// The bits of a scan: bytes stuffed after 0xFF are left out, and past a marker come zeros.
class ScanBits {
 public:
  ScanBits(ByteSpan data, std::size_t at) : data_(data), at_(at) {}

  int bit() {
    if (held_ == 0) {
      current_ = next_byte();
      held_ = 8;
    }
    return current_ >> --held_ & 1;
  }
  /// A number of `count` bits whose first bit tells its sign.
  int signed_bits(int count) {
    int value = 0;
    for (int k = 0; k < count; ++k) value = value << 1 | bit();
    return count > 0 && value < 1 << (count - 1) ? value - (1 << count) + 1 : value;
  }
  void restart() {
    held_ = 0;
    if (at_ + 1 < data_.size() && data_[at_] == 0xFF && data_[at_ + 1] >= 0xD0 &&
        data_[at_ + 1] <= 0xD7) {
      at_ += 2;
    }
  }
  std::size_t position() const { return at_; }

 private:
  int next_byte() {
    if (at_ >= data_.size()) damaged_image("JPEG");
    if (data_[at_] != 0xFF) return data_[at_++];
    if (at_ + 1 < data_.size() && data_[at_ + 1] == 0) {
      at_ += 2;
      return 0xFF;
    }
    if (++zeros_ > 64) damaged_image("JPEG");
    return 0;
  }

  ByteSpan data_;
  std::size_t at_;
  int current_ = 0, held_ = 0, zeros_ = 0;
};

struct HuffmanTable {
  std::array<std::uint8_t, 17> counts{};
  std::vector<std::uint8_t> symbols;

  std::uint8_t read(ScanBits& bits) const {
    int code = 0, first = 0;
    std::size_t index = 0;
    for (std::size_t length = 1; length <= 16; ++length) {
      code |= bits.bit();
      const int count = counts[length];
      if (code - first < count) return symbols[index + static_cast<std::size_t>(code - first)];
      index += counts[length];
      first = (first + count) << 1;
      code <<= 1;
    }
    damaged_image("JPEG");
  }
};

struct Component {
  std::uint32_t id = 0, quantizer = 0, dc_table = 0, ac_table = 0;
  std::int64_t across = 1, down = 1;  // samples for each of the image's, relative to the others
  int last_dc = 0;
  SamplePlane plane;
};

// The inverse cosine transform along rows and then columns.
void put_block(const Block& coefficients, SamplePlane& plane, std::int64_t row,
               std::int64_t column) {
  static const std::array<std::array<double, 8>, 8> basis = [] {
    std::array<std::array<double, 8>, 8> table{};
    for (std::size_t position = 0; position < 8; ++position) {
      for (std::size_t wave = 0; wave < 8; ++wave) {
        const double angle = (2.0 * static_cast<double>(position) + 1) * static_cast<double>(wave) *
                             std::numbers::pi / 16;
        table[position][wave] = std::cos(angle) * (wave == 0 ? std::sqrt(0.125) : 0.5);
      }
    }
    return table;
  }();
  std::array<double, 64> rows{};
  for (std::size_t k = 0; k < 64; ++k) {
    if (coefficients[k] == 0) continue;
    for (std::size_t x = 0; x < 8; ++x) rows[k / 8 * 8 + x] += coefficients[k] * basis[x][k % 8];
  }
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      double value = 128.5;
      for (std::size_t wave = 0; wave < 8; ++wave) value += basis[y][wave] * rows[wave * 8 + x];
      plane.set(row * 8 + static_cast<std::int64_t>(y), column * 8 + static_cast<std::int64_t>(x),
                static_cast<std::uint8_t>(std::clamp(std::floor(value), 0.0, 255.0)));
    }
  }
}

class JpegDecoder {
 public:
  explicit JpegDecoder(ByteSpan data) : data_(data), file_(data, "JPEG", true) {}

  Image run() {
    std::size_t at = 2;
    for (;;) {
      while (file_.number(at, 1) == 0xFF && file_.number(at + 1, 1) == 0xFF) ++at;
      const std::uint32_t marker = file_.number(at, 2);
      if (marker == 0xFFD9) break;
      const std::size_t length = file_.number(at + 2, 2);
      file_.bytes(at + 2, std::max<std::size_t>(length, 2));
      const std::size_t content = at + 4, end = at + 2 + length;
      at = end;
      if (marker == 0xFFC4) {
        read_huffman(content, end);
      } else if (marker == 0xFFDB) {
        read_quantizers(content, end);
      } else if (marker == 0xFFC0 || marker == 0xFFC1) {
        read_frame(content);
      } else if (marker == 0xFFDD) {
        restart_interval_ = file_.number(content, 2);
      } else if (marker == 0xFFDA) {
        at = read_scan(content);
        break;
      } else if (marker >= 0xFFC2 && marker <= 0xFFCF && marker != 0xFFC8 && marker != 0xFFCC) {
        unsupported_image("a JPEG that is not baseline");
      } else if (marker < 0xFFC0) {
        damaged_image("JPEG");
      }
    }
    if (components_.empty()) damaged_image("JPEG");
    return joined();
  }

 private:
  void read_huffman(std::size_t at, std::size_t end) {
    while (at < end) {
      const std::uint32_t kind = file_.number(at, 1);
      if ((kind & 0x0F) > 3 || kind >> 4 > 1) damaged_image("JPEG");
      HuffmanTable& table = tables_[kind >> 4][kind & 0x0F];
      std::size_t total = 0;
      for (std::size_t k = 1; k <= 16; ++k) {
        table.counts[k] = static_cast<std::uint8_t>(file_.number(at + k, 1));
        total += table.counts[k];
      }
      const ByteSpan symbols = file_.bytes(at + 17, total);
      table.symbols.assign(symbols.begin(), symbols.end());
      at += 17 + total;
    }
  }

  void read_quantizers(std::size_t at, std::size_t end) {
    while (at < end) {
      const std::uint32_t kind = file_.number(at, 1);
      if ((kind & 0x0F) > 3) damaged_image("JPEG");
      const std::size_t bytes = kind >> 4 ? 2 : 1;
      for (std::size_t k = 0; k < 64; ++k) {
        quantizers_[kind & 0x0F][kZigZag[k]] =
            static_cast<int>(file_.number(at + 1 + k * bytes, bytes));
      }
      at += 1 + 64 * bytes;
    }
  }

  void read_frame(std::size_t at) {
    if (!components_.empty()) damaged_image("JPEG");
    height_ = file_.number(at + 1, 2);
    width_ = file_.number(at + 3, 2);
    const std::uint32_t count = file_.number(at + 5, 1);
    if (file_.number(at, 1) != 8 || (count != 1 && count != 3))
      unsupported_image("this kind of JPEG");
    blank_image(height_, width_);  // refuses sizes that make no sense
    for (std::size_t k = 0; k < count; ++k) {
      Component part;
      part.id = file_.number(at + 6 + 3 * k, 1);
      const std::uint32_t sampling = file_.number(at + 7 + 3 * k, 1);
      part.across = sampling >> 4;
      part.down = sampling & 0x0F;
      part.quantizer = file_.number(at + 8 + 3 * k, 1);
      if (part.across < 1 || part.across > 4 || part.down < 1 || part.down > 4 ||
          part.quantizer > 3) {
        damaged_image("JPEG");
      }
      // A single component is never interleaved, whatever it says of its sampling.
      if (count == 1) part.across = part.down = 1;
      across_ = std::max(across_, part.across);
      down_ = std::max(down_, part.down);
      components_.push_back(std::move(part));
    }
    for (Component& part : components_) {
      part.plane = SamplePlane(units_down() * part.down * 8, units_across() * part.across * 8);
    }
  }

  std::int64_t units_across() const { return (width_ + across_ * 8 - 1) / (across_ * 8); }
  std::int64_t units_down() const { return (height_ + down_ * 8 - 1) / (down_ * 8); }

  std::size_t read_scan(std::size_t at) {
    const std::uint32_t count = file_.number(at, 1);
    if (components_.empty() || count != components_.size())
      unsupported_image("a JPEG in several scans");
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint32_t id = file_.number(at + 1 + 2 * k, 1),
                          tables = file_.number(at + 2 + 2 * k, 1);
      const auto part = std::find_if(components_.begin(), components_.end(),
                                     [&](const Component& other) { return other.id == id; });
      if (part == components_.end() || tables >> 4 > 3 || (tables & 0x0F) > 3)
        damaged_image("JPEG");
      part->dc_table = tables >> 4;
      part->ac_table = tables & 0x0F;
    }
    ScanBits bits(data_, at + 1 + 2 * std::size_t{count} + 3);
    const std::int64_t units = units_across() * units_down();
    for (std::int64_t unit = 0; unit < units; ++unit) {
      if (restart_interval_ > 0 && unit > 0 && unit % restart_interval_ == 0) {
        bits.restart();
        for (Component& part : components_) part.last_dc = 0;
      }
      for (Component& part : components_) {
        for (std::int64_t k = 0; k < part.across * part.down; ++k) {
          put_block(read_block(bits, part), part.plane,
                    unit / units_across() * part.down + k / part.across,
                    unit % units_across() * part.across + k % part.across);
        }
      }
    }
    return bits.position();
  }

  Block read_block(ScanBits& bits, Component& part) const {
    const Block& quantizer = quantizers_[part.quantizer];
    Block block{};
    const int category = tables_[0][part.dc_table].read(bits);
    if (category > 11) damaged_image("JPEG");
    part.last_dc += bits.signed_bits(category);
    block[0] = std::clamp(part.last_dc, -32768, 32767) * quantizer[0];
    for (std::size_t k = 1; k < 64; ++k) {
      const int symbol = tables_[1][part.ac_table].read(bits);
      const int size = symbol & 0x0F;
      if (size == 0 && symbol != 0xF0) break;
      k += static_cast<std::size_t>(symbol >> 4);
      if (size == 0) continue;
      if (k > 63) damaged_image("JPEG");
      block[kZigZag[k]] = bits.signed_bits(size) * quantizer[kZigZag[k]];
    }
    return block;
  }

  Image joined() const {
    std::vector<SamplePlane> planes;
    for (const Component& part : components_) {
      const SamplePlane inside = part.plane.cropped((height_ * part.down + down_ - 1) / down_,
                                                    (width_ * part.across + across_ - 1) / across_);
      planes.push_back(inside.widened(height_, width_, down_ / part.down, across_ / part.across));
    }
    Image image = blank_image(height_, width_);
    for (std::int64_t pixel = 0; pixel < height_ * width_; ++pixel) {
      std::uint8_t* target = &image.rgb[static_cast<std::size_t>(pixel) * 3];
      const std::int64_t row = pixel / width_, column = pixel % width_;
      const int luma = planes[0].at(row, column);
      if (planes.size() == 1) {
        std::fill_n(target, 3, static_cast<std::uint8_t>(luma));
      } else {
        put_rgb(target, luma, planes[1].at(row, column) - 128, planes[2].at(row, column) - 128);
      }
    }
    return image;
  }

  ByteSpan data_;
  ImageReader file_;
  std::array<std::array<HuffmanTable, 4>, 2> tables_;  // of first and of other coefficients
  std::array<Block, 4> quantizers_{};
  std::vector<Component> components_;
  std::int64_t height_ = 0, width_ = 0, across_ = 1, down_ = 1, restart_interval_ = 0;
};

}  // namespace

Image decode_jpeg(ByteSpan data) { return JpegDecoder(data).run(); }

}  // namespace tenon
