#pragma once

#include "ir/dtype.h"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

// Conversions between runs of elements and the widest type of their kind; `data` points at the
// first element.
namespace tenon::inline ir::elements {

/// Loads the real parts of complex numbers. Parses strings; throws Error if one is not a number.
void load_reals(DType dtype, const std::byte* data, std::span<double> values);
/// Floats truncate toward zero and saturate at the ends of int64, NaN gives 0; u64 keeps its bits.
void load_integers(DType dtype, const std::byte* data, std::span<std::int64_t> values);
void load_complex(DType dtype, const std::byte* data, std::span<std::complex<double>> values);
void load_texts(DType dtype, const std::byte* data, std::span<std::string> values);

/// Floats round once, to nearest even (f8 and f4 saturate); integers truncate as above, then wrap.
void store_reals(DType dtype, std::span<const double> values, std::byte* data);
/// Integers wrap; `is_unsigned` means that the values are the bits of u64.
void store_integers(DType dtype, std::span<const std::int64_t> values, bool is_unsigned,
                    std::byte* data);
void store_complex(DType dtype, std::span<const std::complex<double>> values, std::byte* data);

}  // namespace tenon::inline ir::elements
