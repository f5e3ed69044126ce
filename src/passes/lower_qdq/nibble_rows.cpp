#include "passes/lower_qdq/nibble_rows.h"

#include <algorithm>
#include <vector>

namespace tenon::passes::qdq {
namespace {

// Smaller weights are unpacked to one byte each by constant folding (`fold_constants`).
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 18;

// Weights in a 32-bit word: four in the low nibbles of its bytes, four in the high nibbles.
constexpr std::int64_t kInWord = 8, kBytes = 4;
// Words of a part whose products are accumulated in integers before conversion to float; a kernel
// unrolls over them.
constexpr std::int64_t kMostWords = 4;
constexpr std::int64_t kDigits = 3;
// Largest magnitude of a row, as an integer of three base-256 digits from -128 to 127.
constexpr double kLargest = 127.0 * 65536;
// A smaller magnitude would make the quotient infinite.
constexpr double kLeastMagnitude = 1e-30;
constexpr std::int64_t kMiddle = 8;  // the default zero point

// Layout of a run of weights: parts of `words` words each, zero-padded after the last weight.
struct RunLayout {
  std::int64_t words = 0, count = 0;

  explicit RunLayout(std::int64_t length) {
    const std::int64_t needed = (length + kInWord - 1) / kInWord;
    words = std::min(needed, kMostWords);
    count = words == 0 ? 0 : (needed + words - 1) / words;
  }
  std::int64_t numbers() const { return words * kInWord; }
};

class Packer {
 public:
  Packer(const Constant& weights, const Constant& scale, const Constant* zero, const Runs& runs)
      : terms_(weights.shape()[0]),
        columns_(weights.shape()[1]),
        length_(runs.rows == 0 ? terms_ : runs.length),
        run_count_(length_ == 0 ? 0 : terms_ / length_),
        blocks_((columns_ + kColumns - 1) / kColumns),
        parts_(length_) {
    const bool is_narrow = weights.dtype() == DType::I4 || weights.dtype() == DType::U4;
    if (!is_narrow || run_count_ * length_ != terms_) return;
    const std::int64_t bias = weights.dtype() == DType::I4 ? 8 : 0;  // stores -8..7 as 0..15
    const Tensor numbers = weights.materialise();
    for (std::int64_t k = 0; k < numbers.size(); ++k)
      weights_.push_back(static_cast<std::uint8_t>(numbers.integer_at(k) + bias));
    const std::optional<Tensor> zeros = zero ? std::optional(zero->materialise()) : std::nullopt;
    for (std::int64_t run = 0; run < run_count_; ++run) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        const std::int64_t at = scale.size() == 1 ? 0 : run * columns_ + column;
        zeros_.push_back(static_cast<std::uint8_t>((zeros ? zeros->integer_at(at) : 0) + bias));
        is_balanced_ &= zeros_.back() == kMiddle;
      }
    }
  }

  bool is_possible() const {
    return !weights_.empty() &&
           blocks_ * run_count_ * parts_.count * parts_.words * kColumns * kBytes >= kLeastBytes;
  }
  std::int64_t run_count() const { return run_count_; }
  std::int64_t length() const { return length_; }
  const RunLayout& parts() const { return parts_; }
  std::int64_t blocks() const { return blocks_; }
  bool is_balanced() const { return is_balanced_; }

  // [blocks, runs, parts, words, columns of a block]
  Tensor packed() const {
    Tensor made(DType::I32, {blocks_, run_count_, parts_.count, parts_.words, kColumns});
    auto* to = made.as_mutable<std::int32_t>().data();
    for (std::int64_t block = 0; block < blocks_; ++block) {
      for (std::int64_t run = 0; run < run_count_; ++run) {
        for (std::int64_t word = 0; word < parts_.count * parts_.words; ++word) {
          for (std::int64_t k = 0; k < kColumns; ++k)
            *to++ = word_at(run, word, block * kColumns + k);
        }
      }
    }
    return made;
  }

  // Scales of every run and column, or one number: [blocks, runs, 1, 1, columns of a block].
  Tensor scales(const Tensor& given) const {
    if (given.size() == 1) return given.reshaped({});
    return in_blocks<float>(DType::F32, given.as<float>());
  }
  Tensor zeros() const { return in_blocks<std::uint8_t>(DType::U8, zeros_); }

 private:
  // Matches the order of `digits_of_row`: neighbours in the bytes of a word are 2 x words apart.
  std::int32_t word_at(std::int64_t run, std::int64_t word, std::int64_t column) const {
    const std::int64_t first = word / parts_.words * parts_.numbers(),
                       in_part = word % parts_.words;
    std::uint32_t bits = 0;
    for (std::int64_t byte = 0; byte < kBytes; ++byte) {
      for (std::int64_t half = 0; half < 2; ++half) {
        const std::int64_t place = first + (byte * 2 + half) * parts_.words + in_part;
        if (place >= length_ || column >= columns_) continue;
        const std::uint32_t weight =
            weights_[static_cast<std::size_t>((run * length_ + place) * columns_ + column)];
        bits |= weight << static_cast<unsigned>(8 * byte + 4 * half);
      }
    }
    return static_cast<std::int32_t>(bits);
  }

  template <class T>
  Tensor in_blocks(DType dtype, std::span<const T> from) const {
    Tensor made(dtype, {blocks_, run_count_, 1, 1, kColumns});
    auto* to = made.as_mutable<T>().data();
    for (std::int64_t block = 0; block < blocks_; ++block) {
      for (std::int64_t run = 0; run < run_count_; ++run) {
        const std::int64_t count = std::min(kColumns, columns_ - block * kColumns);
        std::copy_n(from.begin() + run * columns_ + block * kColumns, count,
                    to + (block * run_count_ + run) * kColumns);
      }
    }
    return made;
  }

  std::int64_t terms_, columns_, length_, run_count_, blocks_;
  RunLayout parts_;
  std::vector<std::uint8_t> weights_, zeros_;  // [terms, columns], [runs, columns]
  bool is_balanced_ = true;
};

// Builds the nodes of one product.
class NibbleRowsBuilder {
 public:
  NibbleRowsBuilder(const rewrite::Match& match, const Packer& packer)
      : match_(match),
        runs_(packer.run_count()),
        length_(packer.length()),
        parts_(packer.parts()) {}

  // The row as integers of three digits: `words` packs four bytes into a word, [runs, parts, digits
  // x words of digits, 1]; `step` is the quantization step; `sums` holds each digit's sums over a
  // part, [runs, parts, digits, 1].
  struct Row {
    ValueId words, step, sums;
  };
  Row row_of(ValueId given) const {
    const ValueId row = match_.make_reshape(given, {runs_ * length_});
    const ValueId largest = match_.make("reduce_max", {match_.make("abs", {row})},
                                        {{"axes", Dims{Dim(0)}}, {"keep_axes", false}});
    const ValueId magnitude = once(match_.make("maximum", {largest, real(kLeastMagnitude)}));
    const ValueId factor = match_.make("div", {real(kLargest), magnitude});
    ValueId whole = match_.make("round", {match_.make("mul", {row, factor})});
    whole =
        match_.make_reshape(match_.make("cast", {whole}, {{"to", DType::I32}}), {runs_, length_});
    const Dim padded = Dim(parts_.count * parts_.numbers());
    if (!(padded == length_)) {
      whole =
          match_.make("pad", {whole}, {{"pads", Dims{Dim(0), Dim(0), Dim(0), padded - length_}}});
    }
    const Dim in_byte = Dim(2 * parts_.words);
    whole = match_.make_reshape(whole, {runs_, Dim(parts_.count), Dim(1), Dim(kBytes), in_byte});
    // A lower digit is negative if it rounds up into the next one.
    const ValueId carried =
        match_.make("add", {whole, integers({128 * 256 + 128, 128, 0}, {3, 1, 1})});
    const ValueId digits = match_.make(
        "bit_and",
        {match_.make("shift_right", {carried, integers({16, 8, 0}, {3, 1, 1})}), integer(255)});
    const ValueId in_place = match_.make("shift_left", {digits, integers({0, 8, 16, 24}, {4, 1})});
    const ValueId words =
        once(match_.make("reduce_sum", {in_place}, {{"axes", Dims{Dim(3)}}, {"keep_axes", false}}));
    const ValueId ones = match_.make("dp4a", {integer(0x01010101), words});
    const ValueId sums =
        match_.make("reduce_sum", {ones}, {{"axes", Dims{Dim(3)}}, {"keep_axes", true}});
    return {match_.make_reshape(words, {runs_, Dim(parts_.count), Dim(kDigits) * in_byte, Dim(1)}),
            match_.make("mul", {magnitude, real(1 / kLargest)}), sums};
  }

  // Returns the products of row and weights, [columns of all blocks], scaled except for the row's
  // step.
  ValueId product(const Row& row, ValueId weights, ValueId scales, ValueId zeros) const {
    const ValueId sums_times_middle =
        zeros ? ValueId() : once(match_.make("mul", {row.sums, integer(-kMiddle)}));
    std::vector<ValueId> totals;
    for (std::int64_t digit = 0; digit < kDigits; ++digit)
      totals.push_back(zeros ? ValueId() : part(sums_times_middle, 2, digit));
    const ValueId mask = integer(0x0f0f0f0f);
    const ValueId lows = match_.make("bit_and", {weights, mask});
    const ValueId highs =
        match_.make("bit_and", {match_.make("shift_right", {weights, integer(4)}), mask});
    for (std::int64_t word = 0; word < parts_.words; ++word) {
      const ValueId low = part(lows, 3, word), high = part(highs, 3, word);
      for (std::int64_t digit = 0; digit < kDigits; ++digit) {
        ValueId& total = totals[static_cast<std::size_t>(digit)];
        for (std::int64_t half = 0; half < 2; ++half) {
          const ValueId of_row = part(row.words, 2, (digit * 2 + half) * parts_.words + word);
          const ValueId sum = match_.make("dp4a", {half == 0 ? low : high, of_row});
          total = total ? match_.make("add", {total, sum}) : sum;
        }
      }
    }
    ValueId sum = joined(totals);
    if (zeros) {
      std::vector<ValueId> of_row;
      for (std::int64_t digit = 0; digit < kDigits; ++digit)
        of_row.push_back(part(row.sums, 2, digit));
      const ValueId taken = match_.make(
          "mul", {match_.make("cast", {zeros}, {{"to", DType::F32}}), once(joined(of_row))});
      sum = match_.make("sub", {sum, taken});
    }
    return match_.make("reduce_sum", {match_.make("mul", {sum, scales})},
                       {{"axes", Dims{Dim(1), Dim(2), Dim(3)}}, {"keep_axes", false}});
  }

 private:
  ValueId real(double number) const { return match_.make_scalar(number, DType::F32); }
  ValueId integer(std::int64_t number) const {
    return integers({static_cast<std::int32_t>(number)}, {});
  }
  ValueId integers(const std::vector<std::int32_t>& numbers, Shape shape) const {
    Tensor made(DType::I32, std::move(shape));
    std::ranges::copy(numbers, made.as_mutable<std::int32_t>().begin());
    return match_.make_constant(Constant(std::move(made)));
  }
  // Keeps the preparation of a row from being recomputed for every block of columns.
  ValueId once(ValueId value) const { return match_.make("stop_fusion", {value}); }
  ValueId part(ValueId of, std::int64_t axis, std::int64_t at) const {
    return match_.make(
        "slice", {of},
        {{"starts", Dims{Dim(at)}}, {"ends", Dims{Dim(at + 1)}}, {"axes", Dims{Dim(axis)}}});
  }
  // Combines digits into one number.
  ValueId joined(const std::vector<ValueId>& digits) const {
    ValueId sum;
    for (const ValueId digit : digits) {
      const ValueId number = match_.make("cast", {digit}, {{"to", DType::F32}});
      sum = sum ? match_.make("add", {match_.make("mul", {sum, real(256)}), number}) : number;
    }
    return sum;
  }

  const rewrite::Match& match_;
  Dim runs_, length_;
  RunLayout parts_;
};

}  // namespace

ValueId row_times_nibbles(const rewrite::Match& match, const Constant& weights,
                          const Constant& scale, const Constant* zero, const Runs& runs) {
  const Packer packer(weights, scale, zero, runs);
  if (!packer.is_possible()) return {};
  const NibbleRowsBuilder builder(match, packer);
  const ValueId words = match.make_constant(Constant(packer.packed()));
  const ValueId scales = match.make_constant(Constant(packer.scales(scale.materialise())));
  match.succeed(match.value("w"), words);
  match.succeed(match.value("t"), scales);
  const ValueId zeros =
      packer.is_balanced() ? ValueId() : match.make_constant(Constant(packer.zeros()));
  const NibbleRowsBuilder::Row row = builder.row_of(match.value("x"));
  const ValueId sums = builder.product(row, words, scales, zeros);
  return match.make("mul", {match.make_reshape(sums, {Dim(packer.blocks() * kColumns)}), row.step});
}

}  // namespace tenon::passes::qdq
