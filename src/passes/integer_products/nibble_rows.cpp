#include "passes/integer_products/nibble_rows.h"

#include <algorithm>
#include <vector>

namespace tenon::integers {
namespace {

// Fewer become floats when constants are folded.
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 18;

// Weights as numbers from 0 to 15, and what stands for zero among them.
struct Nibbles {
  std::vector<std::uint8_t> weights;  // [terms, columns]
  std::vector<std::uint8_t> zeros;    // [runs, columns]
};

class Packer {
 public:
  Packer(const Constant& weights, const Constant& scale, const Constant* zero, const Runs& runs)
      : terms_(weights.shape()[0]),
        columns_(weights.shape()[1]),
        length_(runs.rows == 0 ? terms_ : runs.length),
        run_count_(length_ == 0 ? 0 : terms_ / length_),
        blocks_((columns_ + kColumns - 1) / kColumns) {
    const bool is_narrow = weights.dtype() == DType::I4 || weights.dtype() == DType::U4;
    const bool are_even = length_ % 2 == 0 && run_count_ * length_ == terms_;
    if (!is_narrow || !are_even) return;
    const std::int64_t bias = weights.dtype() == DType::I4 ? 8 : 0;  // from -8 to 7 as from 0 to 15
    const Tensor numbers = weights.materialise();
    for (std::int64_t k = 0; k < numbers.size(); ++k)
      weights_.push_back(static_cast<std::uint8_t>(numbers.integer_at(k) + bias));
    const std::optional<Tensor> zeros = zero ? std::optional(zero->materialise()) : std::nullopt;
    for (std::int64_t run = 0; run < run_count_; ++run) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        const std::int64_t at = scale.size() == 1 ? 0 : run * columns_ + column;
        const auto number = static_cast<std::uint8_t>((zeros ? zeros->integer_at(at) : 0) + bias);
        zeros_.push_back(number);
        is_balanced_ &= number == kMiddle;
      }
    }
  }

  bool is_possible() const {
    return !weights_.empty() && blocks_ * run_count_ * rows() * kColumns >= kLeastBytes;
  }
  std::int64_t run_count() const { return run_count_; }
  std::int64_t half() const { return length_ / 2; }
  // Of bytes in a run: pairs of weights, what zero takes away from the low ones, and from the high
  // ones where that is not nothing.
  std::int64_t rows() const { return half() + (is_balanced_ ? 1 : 2); }
  bool is_balanced() const { return is_balanced_; }
  std::int64_t blocks() const { return blocks_; }

  // [blocks, runs, rows, columns of a block]
  Tensor packed() const {
    Tensor made(DType::I8, {blocks_, run_count_, rows(), kColumns});
    auto* to = made.as_mutable<std::int8_t>().data();
    for (std::int64_t block = 0; block < blocks_; ++block) {
      for (std::int64_t run = 0; run < run_count_; ++run) {
        for (std::int64_t row = 0; row < rows(); ++row) {
          for (std::int64_t k = 0; k < kColumns; ++k) {
            const std::int64_t column = block * kColumns + k;
            *to++ = column < columns_ ? byte_at(run, row, column) : std::int8_t{0};
          }
        }
      }
    }
    return made;
  }

  // [blocks, runs, 1, columns of a block], or one number.
  Tensor scales(const Tensor& given) const {
    if (given.size() == 1) return given.reshaped({});
    Tensor made(DType::F32, {blocks_, run_count_, 1, kColumns});
    auto* to = made.as_mutable<float>().data();
    const auto from = given.as<float>();
    for (std::int64_t block = 0; block < blocks_; ++block) {
      for (std::int64_t run = 0; run < run_count_; ++run) {
        const std::int64_t count = std::min(kColumns, columns_ - block * kColumns);
        const auto first = static_cast<std::size_t>(run * columns_ + block * kColumns);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(first), count,
                    to + (block * run_count_ + run) * kColumns);
      }
    }
    return made;
  }

 private:
  static constexpr int kMiddle = 8;  // of the high weights, which are signed

  std::int8_t byte_at(std::int64_t run, std::int64_t row, std::int64_t column) const {
    const int zero = zeros_[static_cast<std::size_t>(run * columns_ + column)];
    if (row == half()) return static_cast<std::int8_t>(-zero);
    if (row > half()) return static_cast<std::int8_t>(kMiddle - zero);
    const auto weight = [&](std::int64_t place) {
      return static_cast<int>(
          weights_[static_cast<std::size_t>((run * length_ + place) * columns_ + column)]);
    };
    return static_cast<std::int8_t>(16 * (weight(row + half()) - kMiddle) + weight(row));
  }

  std::int64_t terms_, columns_, length_, run_count_, blocks_;
  std::vector<std::uint8_t> weights_, zeros_;
  bool is_balanced_ = true;
};

}  // namespace

ValueId row_times_nibbles(const rewrite::Match& match, const Constant& weights,
                          const Constant& scale, const Constant* zero, const Runs& runs) {
  const Packer packer(weights, scale, zero, runs);
  if (!packer.is_possible()) return {};
  const Dim run_count = packer.run_count(), half = packer.half();
  const ValueId row = match.make_reshape(match.value("x"), {run_count, Dim(2) * half, Dim(1)});
  const auto part = [&](const Dim& begin, const Dim& end) {
    return match.make("slice", {row},
                      {{"starts", Dims{begin}}, {"ends", Dims{end}}, {"axes", Dims{Dim(1)}}});
  };
  const ValueId low = part(Dim(0), half), high = part(half, Dim(2) * half);
  const auto total = [&](ValueId values) {
    return match.make("reduce_sum", {values}, {{"axes", Dims{Dim(1)}}, {"keep_axes", true}});
  };
  const ValueId times_16 = match.make("mul", {low, match.make_scalar(16, DType::F32)});
  std::vector<ValueId> of_v = {low, total(low)}, of_h = {match.make("sub", {high, times_16})};
  if (!packer.is_balanced()) of_v.push_back(total(high));
  const std::int64_t zeros = packer.rows() - packer.half();
  of_h.push_back(match.make_constant(Constant(Tensor(DType::F32, {packer.run_count(), zeros, 1}))));
  const auto joined = [&](const std::vector<ValueId>& parts) {
    // What makes the row is not computed again for every block of columns.
    return match.make("stop_fusion", {match.make("concat", parts, {{"axis", Dim(1)}})});
  };
  const ValueId bytes = match.make_constant(Constant(packer.packed()));
  const ValueId scales = match.make_constant(Constant(packer.scales(scale.materialise())));
  match.succeed(match.value("w"), bytes);
  match.succeed(match.value("t"), scales);
  const ValueId v = match.make("cast", {bytes}, {{"to", DType::F32}});
  // No slower than a shift of bytes, of which processors have none.
  const ValueId h =
      match.make("floor", {match.make("mul", {v, match.make_scalar(1.0 / 16, DType::F32)})});
  const ValueId pairs = match.make(
      "add", {match.make("mul", {joined(of_v), v}), match.make("mul", {joined(of_h), h})});
  const ValueId sums = match.make("reduce_sum", {match.make("mul", {pairs, scales})},
                                  {{"axes", Dims{Dim(1), Dim(2)}}, {"keep_axes", false}});
  return match.make_reshape(sums, {Dim(packer.blocks() * kColumns)});
}

}  // namespace tenon::integers
