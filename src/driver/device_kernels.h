#pragma once

#include "codegen/compile.h"
#include "ir/graph.h"
#include "tune/cache.h"

#include <cstddef>
#include <string>

namespace tenon::driver {

/// A graph annotated with the device kernels of its nodes, for formats that name kernels.
struct DeviceKernels {
  Graph graph;
  /// nodes whose kernels were timed on the device, at every extent
  std::size_t timed = 0;
  /// nodes with an untimed default, marked in the name
  std::size_t untuned = 0;
  /// device of the timings; may be empty
  std::string device;
};

/// Annotates the convolutions and products of an optimized graph with the fastest kernels of the
/// cache, for this machine's device or else the device with the most entries; others get the
/// untimed default. `times`: times unknown ones on the device first, as `tune` does: our own
/// kernels and libraries with their fastest algorithms. For a symbolic extent, times a few values,
/// each for the range up to it; further symbols take their largest value. Throws Error (Device)
/// without a device to time on.
DeviceKernels with_device_kernels(Graph graph, tune::TuningCache& cache,
                                  const codegen::CompileOptions& options, bool times);

}  // namespace tenon::driver
