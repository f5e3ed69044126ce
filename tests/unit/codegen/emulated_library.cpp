#include "emulated_library.h"

#include "base/error.h"
#include "ir/float_formats.h"

#include <algorithm>

namespace tenon::testing {
namespace {

// Typed access to elements of the types that libraries multiply.
class Elements {
 public:
  Elements(void* data, const std::string& dtype)
      : data_(data), is_single_(dtype == "f32"), is_half_(dtype == "f16") {}
  double at(long long k) const {
    if (is_single_) return static_cast<const float*>(data_)[k];
    const std::uint16_t bits = static_cast<const std::uint16_t*>(data_)[k];
    return is_half_ ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
  void set(long long k, double value) const {
    const auto single = static_cast<float>(value);
    if (is_single_) {
      static_cast<float*>(data_)[k] = single;
    } else {
      static_cast<std::uint16_t*>(data_)[k] = is_half_ ? f32_to_f16(single) : f32_to_bf16(single);
    }
  }

 private:
  void* data_;
  bool is_single_, is_half_;
};

// Epilogue of a library call: bias by column, residual by position.
class Epilogue {
 public:
  Epilogue(const LibraryCall& call, const std::vector<void*>& buffers)
      : call_(call),
        bias_(buffers[2], call.result_dtype),
        residual_(buffers[call.has_bias ? 3 : 2], call.result_dtype) {}
  double of(double sum, long long column, long long place) const {
    double value = call_.alpha * sum;
    if (call_.has_bias) value += bias_.at(column);
    if (call_.has_residual) value += residual_.at(place);
    return call_.is_rectified ? std::max(value, 0.0) : value;
  }

 private:
  const LibraryCall& call_;
  Elements bias_, residual_;
};

void multiply(const LibraryCall& call, std::span<const long long> e,
              const std::vector<void*>& buffers) {
  const Elements a(buffers[0], call.dtype), b(buffers[1], call.dtype),
      y(buffers.back(), call.result_dtype);
  const Epilogue epilogue(call, buffers);
  for (long long batch = 0; batch < e[0]; ++batch) {
    for (long long row = 0; row < e[1]; ++row) {
      for (long long column = 0; column < e[2]; ++column) {
        double sum = 0;
        for (long long k = 0; k < e[3]; ++k) {
          const long long left = call.is_a_transposed ? k * e[4] + row : row * e[4] + k,
                          right = call.is_b_transposed ? column * e[6] + k : k * e[6] + column;
          sum += a.at(batch * e[5] + left) * b.at(batch * e[7] + right);
        }
        y.set(batch * e[9] + row * e[8] + column,
              epilogue.of(sum, column, batch * e[11] + row * e[10] + column));
      }
    }
  }
}

// A convolution or one of its gradients: scatters each product of a pixel and a weight to its
// result.
class Convolution {
 public:
  explicit Convolution(std::span<const long long> e) : e_(e) {}

  template <class Use>
  void for_each_product(const Use& use) const {
    const long long of_group = e_[3] / e_[17], outputs = e_[4] / e_[17];
    for (long long n = 0; n < e_[0]; ++n)
      for (long long r = 0; r < e_[7]; ++r)
        for (long long s = 0; s < e_[8]; ++s)
          for (long long output = 0; output < e_[4]; ++output)
            for (long long i = 0; i < e_[5]; ++i)
              for (long long j = 0; j < e_[6]; ++j) {
                const long long row = r * e_[13] + i * e_[15] - e_[9],
                                column = s * e_[14] + j * e_[16] - e_[11];
                if (row < 0 || row >= e_[1] || column < 0 || column >= e_[2]) continue;
                for (long long c = 0; c < of_group; ++c) {
                  const long long channel = output / outputs * of_group + c;
                  use(((n * e_[1] + row) * e_[2] + column) * e_[3] + channel,
                      ((output * e_[5] + i) * e_[6] + j) * of_group + c,
                      ((n * e_[7] + r) * e_[8] + s) * e_[4] + output);
                }
              }
  }
  long long image_size() const { return e_[0] * e_[1] * e_[2] * e_[3]; }
  long long weight_size() const { return e_[4] * e_[5] * e_[6] * (e_[3] / e_[17]); }
  long long result_size() const { return e_[0] * e_[7] * e_[8] * e_[4]; }

 private:
  std::span<const long long> e_;
};

void convolve(const LibraryCall& call, std::span<const long long> e,
              const std::vector<void*>& buffers) {
  const Convolution convolution(e);
  const Elements a(buffers[0], call.dtype), b(buffers[1], call.dtype),
      y(buffers.back(), call.result_dtype);
  std::vector<double> sums;
  switch (call.kind) {
    case LibraryCall::Kind::DataGradient:
      sums.resize(static_cast<std::size_t>(convolution.image_size()));
      convolution.for_each_product([&](long long image, long long weight, long long result) {
        sums[static_cast<std::size_t>(image)] += a.at(result) * b.at(weight);
      });
      break;
    case LibraryCall::Kind::WeightGradient:
      sums.resize(static_cast<std::size_t>(convolution.weight_size()));
      convolution.for_each_product([&](long long image, long long weight, long long result) {
        sums[static_cast<std::size_t>(weight)] += a.at(image) * b.at(result);
      });
      break;
    default:
      sums.resize(static_cast<std::size_t>(convolution.result_size()));
      convolution.for_each_product([&](long long image, long long weight, long long result) {
        sums[static_cast<std::size_t>(result)] += a.at(image) * b.at(weight);
      });
  }
  const Epilogue epilogue(call, buffers);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const auto place = static_cast<long long>(k);
    y.set(place, epilogue.of(sums[k], place % e[4], place));
  }
}

}  // namespace

void run_library(const LibraryCall& call, std::span<const long long> extents,
                 const std::vector<void*>& buffers) {
  if (extents.size() != extent_count(call.kind))
    throw Error("a library's function takes another number of extents").got(extents.size());
  call.kind == LibraryCall::Kind::Matmul ? multiply(call, extents, buffers)
                                         : convolve(call, extents, buffers);
}

}  // namespace tenon::testing
