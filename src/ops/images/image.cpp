#include "ops/images/image.h"

#include "base/error.h"

#include <algorithm>
#include <cctype>

namespace tenon::inline ops {
namespace {

constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

bool starts_with(ByteSpan data, std::string_view text, std::size_t at = 0) {
  return data.size() >= at + text.size() &&
         std::equal(text.begin(), text.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char letter, std::uint8_t byte) {
                      return static_cast<std::uint8_t>(letter) == byte;
                    });
}

}  // namespace

Image blank_image(std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1 || height > kMaxPixels / width) {
    throw Error("image: its size makes no sense").got(height, " by ", width, " pixels");
  }
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
}

void damaged_image(std::string_view format, std::string_view reason) {
  Error error(concat("image: the ", format, " data is damaged or ends too early"));
  if (!reason.empty()) error.got(reason);
  throw error;
}

void unsupported_image(std::string_view what) {
  throw Error(concat("image: ", what, " is not supported"), ErrorKind::Unsupported)
      .expected("BMP, PNM, JPEG, PNG, TIFF, WebP or JPEG 2000, grey or of three colours");
}

ByteSpan ImageReader::bytes(std::size_t position, std::size_t count) const {
  if (position > data_.size() || count > data_.size() - position) damaged_image(format_);
  return data_.subspan(position, count);
}

std::uint32_t ImageReader::number(std::size_t position, std::size_t count) const {
  const ByteSpan part = bytes(position, count);
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < count; ++k)
    value = value << 8 | part[big_endian_ ? k : count - 1 - k];
  return value;
}

Image decode_image(ByteSpan data) {
  if (starts_with(data, "BM")) return decode_bmp(data);
  if (starts_with(data, "\x89PNG\r\n\x1A\n")) return decode_png(data);
  if (starts_with(data, "II*") || starts_with(data, "MM")) return decode_tiff(data);
  if (data.size() > 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6')
    return decode_pnm(data);
  if (starts_with(data, "\xFF\xD8")) return decode_jpeg(data);
  if (starts_with(data, "WEBP", 8)) return decode_webp(data);
  if (starts_with(data, "jP  ", 4) || starts_with(data, "\xFF\x4F\xFF\x51"))
    return decode_jpeg2000(data);
  unsupported_image("this format");
}

Image decode_bmp(ByteSpan data) {
  const ImageReader file(data, "BMP", false);
  const std::uint32_t start = file.number(10, 4), header = file.number(14, 4);
  const auto width = static_cast<std::int32_t>(file.number(18, 4));
  const std::int64_t signed_height = static_cast<std::int32_t>(file.number(22, 4));
  const std::uint32_t bits = file.number(28, 2), compression = file.number(30, 4);
  if (header < 40 || compression != 0 || (bits != 8 && bits != 24 && bits != 32)) {
    unsupported_image("this kind of BMP");
  }
  const bool is_top_first = signed_height < 0;
  Image image = blank_image(is_top_first ? -signed_height : signed_height, width);
  const std::size_t stride = (static_cast<std::size_t>(width) * bits + 31) / 32 * 4;
  for (std::int64_t row = 0; row < image.height; ++row) {
    const std::int64_t stored = is_top_first ? row : image.height - 1 - row;
    const ByteSpan line = file.bytes(start + static_cast<std::size_t>(stored) * stride, stride);
    for (std::int64_t column = 0; column < width; ++column) {
      ByteSpan pixel = line.subspan(static_cast<std::size_t>(column) * bits / 8);
      if (bits == 8) pixel = file.bytes(14 + header + 4 * std::size_t{pixel[0]}, 4);
      std::uint8_t* target = &image.rgb[static_cast<std::size_t>(row * width + column) * 3];
      for (std::size_t k = 0; k < 3; ++k) target[k] = pixel[2 - k];
    }
  }
  return image;
}

namespace {

/// Parses the numbers in the text part of a PNM file, between white space and comments.
class PnmText {
 public:
  explicit PnmText(ByteSpan data) : data_(data) {}
  std::int64_t number() {
    while (at_ < data_.size() && (std::isspace(data_[at_]) || data_[at_] == '#')) {
      if (data_[at_] == '#') {
        while (at_ < data_.size() && data_[at_] != '\n') ++at_;
      } else {
        ++at_;
      }
    }
    std::int64_t value = -1;
    while (at_ < data_.size() && std::isdigit(data_[at_]) && value < kMaxPixels) {
      value = std::max<std::int64_t>(value, 0) * 10 + (data_[at_++] - '0');
    }
    if (value < 0) damaged_image("PNM");
    return value;
  }
  std::size_t position() const { return at_; }

 private:
  ByteSpan data_;
  std::size_t at_ = 2;
};

}  // namespace

Image decode_pnm(ByteSpan data) {
  const int kind = data[1] - '0';
  if (kind == 1 || kind == 4) unsupported_image("a PNM of single bits");
  const bool is_text = kind < 4;
  const std::size_t channels = kind == 3 || kind == 6 ? 3 : 1;
  PnmText text(data);
  const std::int64_t width = text.number(), height = text.number(), most = text.number();
  if (most < 1 || most > 255) unsupported_image("a PNM with more than 8 bits a sample");
  Image image = blank_image(height, width);
  const std::size_t samples = image.rgb.size() / 3 * channels;
  const ImageReader file(data, "PNM", true);
  const ByteSpan raw = is_text ? ByteSpan{} : file.bytes(text.position() + 1, samples);
  for (std::size_t k = 0; k < samples; ++k) {
    const std::int64_t value = std::min(is_text ? text.number() : std::int64_t{raw[k]}, most);
    const auto scaled = static_cast<std::uint8_t>((value * 255 + most / 2) / most);
    std::fill_n(image.rgb.begin() + static_cast<std::ptrdiff_t>(channels == 3 ? k : k * 3),
                channels == 3 ? 1 : 3, scaled);
  }
  return image;
}

}  // namespace tenon::inline ops
