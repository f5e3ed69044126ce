#pragma once

#include "driver/compile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::app {

struct ConvertOptions {
  std::string model, to, output, style, precision;
  /// 0: unchanged
  std::int64_t batch = 0;
  int opset = 0;
  /// kernels of the tuning cache
  bool kernels = false;
  /// target of the kernels; "true": times those of a device first
  std::string target, tune;
  /// converts its training step instead, with this loss ("": the default)
  bool trains = false;
  std::string loss;
  /// extents of its inputs
  std::vector<std::string> shapes;
};

/// Translates a model into a file of another format. `request` has the callbacks of the caller, for
/// kernels that are timed.
void convert(const ConvertOptions& options, driver::CompileRequest request);

}  // namespace tenon::app
