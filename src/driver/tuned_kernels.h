#pragma once

#include "ir/graph.h"
#include "tune/cache.h"

namespace tenon::driver {

/// Returns the graph annotated with the fastest kernels of the cache for its nodes on this machine,
/// for formats that name kernels.
Graph with_tuned_kernels(Graph graph, const tune::TuningCache& cache, int threads);

}  // namespace tenon::driver
