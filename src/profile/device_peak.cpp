#include "profile/device_peak.h"

#include "base/text.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/library_call.h"

#include <algorithm>
#include <map>

namespace tenon::profile {
namespace {

constexpr std::int64_t kSide = 4096;                     // of the matrices
constexpr std::int64_t kCopied = std::int64_t{1} << 27;  // bytes

// Fills with random numbers: simple operands let multipliers save power and raise the clock.
Tensor filled(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  std::uint32_t state = 1;
  for (std::int64_t k = 0; k < tensor.size(); ++k) {
    state = state * 1664525 + 1013904223;
    tensor.set_real(k, static_cast<double>(state >> 8) / (1 << 24) - 0.5);
  }
  return tensor;
}

// Returns the shortest of several runs on the device, in seconds.
double time_of(const std::string& text, const std::string& precision, const Tensor& input) {
  driver::CompileRequest request;
  request.target = driver::parse_target("cuda", precision);
  CompiledModel model(driver::compile_model(parse_graph(text, all_ops()), request).program, 1);
  model.prepare({Datum(input)});
  model.run_prepared();
  double least = model.executor().replay();
  constexpr int kRuns = 10;
  for (int k = 0; k < kRuns; ++k) least = std::min(least, model.executor().replay());
  return least;
}

double product_rate(DType dtype, const std::string& precision) {
  const std::string type = concat(to_string(dtype), "[", kSide, ", ", kSide, "]");
  const std::string text =
      concat("graph (x: ", type, ") {\n  w = constant ", type,
             " normal(seed = 1, mean = 0.0, deviation = 1.0)\n  y = matmul(x, w)\n  return y\n}\n");
  const double side = kSide;
  return 2 * side * side * side / time_of(text, precision, filled(dtype, {kSide, kSide}));
}

double copy_rate() {
  const std::int64_t count = kCopied / 4;
  const std::string text = concat("graph (x: f32[", count, "]) {\n  y = neg(x)\n  return y\n}\n");
  return 2.0 * kCopied / time_of(text, "", Tensor(DType::F32, {count}));
}

}  // namespace

DevicePeak measure_device_peak() {
  return {product_rate(DType::F16, ""), product_rate(DType::BF16, ""),
          product_rate(DType::F32, "tf32"), product_rate(DType::F32, ""), copy_rate()};
}

MachinePeak measure_device_peak_for(const Program& program) {
  std::map<std::pair<std::string, bool>, double> flops;
  for (const Program::Step& step : program.steps) {
    const std::string& library = program.kernels.at(step.kernel).library;
    if (library.empty()) continue;
    const LibraryCall call = parse_library_call(library);
    flops[{call.dtype, call.allows_tf32}] += std::max(step.flops, 1.0);
  }
  std::pair<std::string, bool> main{"f32", false};
  double most = 0;
  for (const auto& [type, amount] : flops) {
    if (amount > most) main = type;
    most = std::max(most, amount);
  }
  MachinePeak peak;
  peak.flops_per_s = product_rate(*parse_dtype(main.first), main.second ? "tf32" : "");
  peak.bytes_per_s = copy_rate();
  return peak;
}

double least_seconds(const MachinePeak& peak, double flops, double bytes) {
  return std::max(peak.flops_per_s > 0 ? flops / peak.flops_per_s : 0,
                  peak.bytes_per_s > 0 ? bytes / peak.bytes_per_s : 0);
}

}  // namespace tenon::profile
