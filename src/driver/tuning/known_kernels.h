#pragma once

#include "driver/tuning/cache.h"
#include "ir/graph.h"

namespace tenon {

/// The graph with notes in its metadata of which kernels the cache says are fastest for its nodes,
/// as they are and on this machine: what a format that names kernels writes them from.
Graph with_known_kernels(Graph graph, const TuningCache& cache, int threads);

}  // namespace tenon
