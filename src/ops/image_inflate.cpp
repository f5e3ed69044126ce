// Decompression as in RFC 1950 and 1951.
#include "ops/image.h"

#include <array>

namespace tenon {
namespace {

constexpr int kMaxCodeLength = 15;

class BitReader {
 public:
  explicit BitReader(ByteSpan data) : data_(data) {}
  std::uint32_t bits(int count) {
    while (held_ < count) {
      if (at_ >= data_.size()) damaged_image("compressed");
      buffer_ |= std::uint32_t{data_[at_++]} << held_;
      held_ += 8;
    }
    const std::uint32_t value = buffer_ & ((1U << count) - 1);
    buffer_ >>= count;
    held_ -= count;
    return value;
  }
  void skip_to_byte() {
    buffer_ = 0;
    held_ = 0;
  }

 private:
  ByteSpan data_;
  std::size_t at_ = 0;
  std::uint32_t buffer_ = 0;
  int held_ = 0;
};

/// A canonical Huffman code: codes of one length are consecutive, in the order of their symbols.
class HuffmanCode {
 public:
  explicit HuffmanCode(std::span<const std::uint8_t> lengths) {
    for (std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<std::size_t, kMaxCodeLength + 2> starts{};
    for (std::size_t k = 1; k <= kMaxCodeLength; ++k) starts[k + 1] = starts[k] + counts_[k];
    symbols_.resize(lengths.size());
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol]) symbols_[starts[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
    }
  }

  std::uint32_t symbol(BitReader& input) const {
    std::uint32_t code = 0, first = 0, index = 0;
    for (std::size_t length = 1; length <= kMaxCodeLength; ++length) {
      code |= input.bits(1);
      if (code < first + counts_[length]) {
        if (code < first) break;
        return symbols_[index + code - first];
      }
      index += counts_[length];
      first = (first + counts_[length]) << 1;
      code <<= 1;
    }
    damaged_image("compressed");
  }

 private:
  std::array<std::uint32_t, kMaxCodeLength + 1> counts_{};
  std::vector<std::uint16_t> symbols_;
};

struct BlockCodes {
  HuffmanCode literals, distances;
};

BlockCodes fixed_codes() {
  std::array<std::uint8_t, 288> lengths{};
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    lengths[k] = k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8;
  }
  const std::array<std::uint8_t, 30> distances = [] {
    std::array<std::uint8_t, 30> all{};
    all.fill(5);
    return all;
  }();
  return {HuffmanCode(lengths), HuffmanCode(distances)};
}

BlockCodes read_codes(BitReader& input) {
  constexpr std::array<std::size_t, 19> order = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                 11, 4,  12, 3, 13, 2, 14, 1, 15};
  const std::size_t literals = input.bits(5) + 257, distances = input.bits(5) + 1;
  const std::size_t used = input.bits(4) + 4;
  std::array<std::uint8_t, 19> own{};
  for (std::size_t k = 0; k < used; ++k) own[order[k]] = static_cast<std::uint8_t>(input.bits(3));
  const HuffmanCode code(own);
  std::vector<std::uint8_t> lengths;
  while (lengths.size() < literals + distances) {
    const std::uint32_t symbol = code.symbol(input);
    std::size_t repeats = 1;
    std::uint8_t length = static_cast<std::uint8_t>(symbol);
    if (symbol >= 16) {
      if (symbol == 16 && lengths.empty()) damaged_image("compressed");
      length = symbol == 16 ? lengths.back() : 0;
      repeats = symbol == 16   ? 3 + input.bits(2)
                : symbol == 17 ? 3 + input.bits(3)
                               : 11 + input.bits(7);
    }
    lengths.insert(lengths.end(), repeats, length);
  }
  if (lengths.size() != literals + distances) damaged_image("compressed");
  const std::span<const std::uint8_t> all = lengths;
  return {HuffmanCode(all.first(literals)), HuffmanCode(all.subspan(literals))};
}

class Inflater {
 public:
  Inflater(ByteSpan data, std::size_t max_size) : input_(data), max_size_(max_size) {}

  std::vector<std::uint8_t> run() {
    for (bool is_last = false; !is_last;) {
      is_last = input_.bits(1) != 0;
      const std::uint32_t kind = input_.bits(2);
      if (kind == 0) {
        stored_block();
      } else if (kind == 1) {
        coded_block(fixed_codes());
      } else if (kind == 2) {
        coded_block(read_codes(input_));
      } else {
        damaged_image("compressed");
      }
    }
    return std::move(output_);
  }

 private:
  void put(std::uint8_t byte) {
    if (output_.size() >= max_size_) damaged_image("compressed");
    output_.push_back(byte);
  }

  void stored_block() {
    input_.skip_to_byte();
    const std::uint32_t count = input_.bits(16);
    if ((input_.bits(16) ^ 0xFFFFU) != count) damaged_image("compressed");
    for (std::uint32_t k = 0; k < count; ++k) put(static_cast<std::uint8_t>(input_.bits(8)));
  }

  // Extra bits double the step every `group` codes.
  std::size_t extended(std::uint32_t code, std::uint32_t group) {
    if (code < 2 * group) return code;
    const int extra = static_cast<int>(code / group) - 1;
    return (std::size_t{group + code % group} << extra) + input_.bits(extra);
  }

  void coded_block(const BlockCodes& codes) {
    for (;;) {
      const std::uint32_t symbol = codes.literals.symbol(input_);
      if (symbol == 256) return;
      if (symbol < 256) {
        put(static_cast<std::uint8_t>(symbol));
        continue;
      }
      if (symbol > 285) damaged_image("compressed");
      const std::size_t length = symbol == 285 ? 258 : 3 + extended(symbol - 257, 4);
      const std::uint32_t code = codes.distances.symbol(input_);
      if (code > 29) damaged_image("compressed");
      const std::size_t distance = 1 + extended(code, 2);
      if (distance > output_.size()) damaged_image("compressed");
      for (std::size_t k = 0; k < length; ++k) put(output_[output_.size() - distance]);
    }
  }

  BitReader input_;
  std::size_t max_size_;
  std::vector<std::uint8_t> output_;
};

}  // namespace

std::vector<std::uint8_t> inflate(ByteSpan data, std::size_t max_size) {
  if (data.size() < 2 || (data[0] & 15) != 8 || (data[1] & 32) != 0) damaged_image("compressed");
  return Inflater(data.subspan(2), max_size).run();
}

}  // namespace tenon
