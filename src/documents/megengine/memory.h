#pragma once

#include "documents/megengine/import.h"
#include "documents/megengine/index.h"

#include <cstdint>
#include <vector>

namespace tenon::documents::megengine {

/// Shapes and sizes of vars by Tenon's inference; by the document if inference fails.
struct VarFacts {
  /// empty if unknown
  Extents shape;
  std::int64_t element_bits = 32;
  /// false: from the document
  bool is_inferred = false;

  std::int64_t byte_count() const;
};
std::vector<VarFacts> facts_of(const MegEngineProfile& profile, const Index& index,
                               const Inference& inference);

/// Memory of one or several vars, and the steps of comp_seq that need it.
struct VarStorage {
  /// the var that it was allocated for
  std::size_t owner = 0;
  /// by shapes
  std::int64_t byte_count = 0;
  /// first and last step
  std::size_t begin = 0, end = 0;
  /// Allocated by the run, in contrast to constants and memory of the caller.
  bool is_dynamic = false;
};

struct Lifetimes {
  std::vector<VarStorage> storages;
};
Lifetimes lifetimes_of(const MegEngineProfile& profile, const Index& index,
                       const std::vector<VarFacts>& facts);

struct DynamicPeak {
  std::int64_t byte_count = 0;
  std::size_t step = 0;
};
/// Returns the peak of dynamic memory over steps; `byte_counts` by storage.
DynamicPeak live_peak(const Lifetimes& lifetimes, std::size_t step_count,
                      const std::vector<std::int64_t>& byte_counts);
std::vector<std::int64_t> bytes_by_shape(const Lifetimes& lifetimes);

}  // namespace tenon::documents::megengine
