#include "quantize/histogram.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/element_access.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace tenon::quantize {

// Merges pairs of adjacent bins; the new outer bins are empty.
void Histogram::widen(double to) {
  if (radius_ == 0) {
    radius_ = std::exp2(std::ceil(std::log2(std::max(to, 1e-30))));
    return;
  }
  while (radius_ < to) {
    std::vector<std::int64_t> wider(kBins, 0);
    for (std::size_t k = 0; k < kBins; ++k) wider[kBins / 4 + k / 2] += bins_[k];
    bins_ = std::move(wider);
    radius_ *= 2;
  }
}

void Histogram::add(const Tensor& tensor) {
  const auto size = static_cast<std::size_t>(tensor.size());
  const std::size_t element_bytes = info(tensor.dtype()).storage_bytes;
  std::array<double, 1024> some{};
  for (std::size_t at = 0; at < size; at += some.size()) {
    const std::span<double> values(some.data(), std::min(some.size(), size - at));
    elements::load_reals(tensor.dtype(), tensor.bytes().data() + at * element_bytes, values);
    double least = values.front(), greatest = values.front();
    bool is_finite = true;
    for (const double value : values) {
      is_finite &= std::isfinite(value);
      least = std::min(least, value);
      greatest = std::max(greatest, value);
    }
    if (!is_finite) {
      const auto bad =
          std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
      throw Error("a value to be quantized is not finite", ErrorKind::Usage)
          .expected("numbers")
          .got(*bad, " at element ", at + static_cast<std::size_t>(bad - values.begin()));
    }
    widen(std::max(std::abs(least), std::abs(greatest)));
    least_ = count_ == 0 ? least : std::min(least_, least);
    greatest_ = count_ == 0 ? greatest : std::max(greatest_, greatest);
    count_ += static_cast<std::int64_t>(values.size());
    const double scale = static_cast<double>(kBins) / (2 * radius_);
    for (const double value : values) {
      const auto bin = static_cast<std::int64_t>((value + radius_) * scale);
      ++bins_[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, kBins - 1))];
    }
  }
}

// Writes only nonempty bins, each with its index.
std::string Histogram::text() const {
  std::ostringstream out;
  out << std::hexfloat << radius_ << ' ' << least_ << ' ' << greatest_ << ' ' << std::dec << count_;
  for (std::size_t k = 0; k < kBins; ++k) {
    if (bins_[k] != 0) out << ' ' << k << ':' << bins_[k];
  }
  return out.str();
}

Histogram Histogram::parse(const std::string& text) {
  Histogram made;
  std::istringstream in(text);
  std::array<std::string, 3> reals;
  const auto refuse = [&] {
    return Error("a histogram cannot be read", ErrorKind::Usage).got(text.substr(0, 80));
  };
  if (!(in >> reals[0] >> reals[1] >> reals[2] >> made.count_)) throw refuse();
  // Streams write hexadecimal floats but do not read them.
  made.radius_ = std::strtod(reals[0].c_str(), nullptr);
  made.least_ = std::strtod(reals[1].c_str(), nullptr);
  made.greatest_ = std::strtod(reals[2].c_str(), nullptr);
  std::int64_t total = 0;
  for (std::string entry; in >> entry;) {
    const std::size_t colon = entry.find(':');
    const auto place = parse_integer(entry.substr(0, colon));
    const auto number =
        colon == std::string::npos ? std::nullopt : parse_integer(entry.substr(colon + 1));
    if (!place || !number || *place < 0 || *place >= static_cast<std::int64_t>(kBins) ||
        *number < 0)
      throw refuse();
    made.bins_[static_cast<std::size_t>(*place)] = *number;
    total += *number;
  }
  if (total != made.count_) throw refuse();
  return made;
}

}  // namespace tenon::quantize
