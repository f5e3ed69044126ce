#pragma once

#include "frontends/megengine/import.h"
#include "frontends/megengine/index.h"

#include <cstdint>
#include <vector>

namespace tenon::megengine {

/// The shapes and sizes of vars as Tenon infers them; the document's word where it cannot.
struct VarFacts {
  /// empty where not known
  Extents shape;
  std::int64_t element_bits = 32;
  /// rather than taken from the document
  bool is_inferred = false;

  std::int64_t byte_count() const;
};
std::vector<VarFacts> facts_of(const Profile& profile, const Index& index,
                               const Inference& inference);

/// Memory that one or several vars live in, and the steps of comp_seq it is needed for.
struct Storage {
  /// the var that it was made for
  std::size_t owner = 0;
  /// by shapes
  std::int64_t byte_count = 0;
  /// first and last step
  std::size_t begin = 0, end = 0;
  /// Neither a constant nor memory that somebody else gave: what the run itself has to find room
  /// for.
  bool is_dynamic = false;
};

struct Lifetimes {
  std::vector<Storage> storages;
};
Lifetimes lifetimes_of(const Profile& profile, const Index& index,
                       const std::vector<VarFacts>& facts);

struct LivePeak {
  std::int64_t byte_count = 0;
  std::size_t step = 0;
};
/// The most dynamic memory alive at one step; `byte_counts` by storage.
LivePeak live_peak(const Lifetimes& lifetimes, std::size_t step_count,
                   const std::vector<std::int64_t>& byte_counts);
std::vector<std::int64_t> bytes_by_shape(const Lifetimes& lifetimes);

}  // namespace tenon::megengine
