#pragma once

#include "codegen/compile.h"
#include "driver/tuning/cache.h"
#include "ir/graph.h"

#include <cstddef>
#include <string>

namespace tenon {

/// A graph with notes in its metadata of what a device computes its nodes with: what a format that
/// names kernels writes them from.
struct DeviceKernels {
  Graph graph;
  /// nodes whose kernels were timed on the device, at every extent
  std::size_t timed = 0;
  /// nodes that have what is taken untimed; such a name says so
  std::size_t untuned = 0;
  /// whose timings they are; empty where there are none
  std::string device;
};

/// Notes what the cache says is fastest for the convolutions and products of a graph as they are,
/// on the device that is here or, without one, on the one that the cache knows most of them from;
/// for others the choice that is made untuned. `times`: those that are not known are timed on the
/// device first, as `tune` does: kernels of our own and libraries, by the fastest way of each.
/// Where a symbol decides extents a few of its values are looked at, each for the range up to it;
/// further symbols have their greatest. Throws Error (Device) where there is nothing to time on.
DeviceKernels with_device_kernels(Graph graph, TuningCache& cache,
                                  const codegen::CompileOptions& options, bool times);

}  // namespace tenon
