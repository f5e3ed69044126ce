#pragma once

#include "runtime/bound_shapes.h"
#include "runtime/cuda/library_step.h"
#include "runtime/cuda/model.h"
#include "runtime/cuda/tensor_map.h"
#include "runtime/segments.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::cuda {

/// One call with everything looked up. A kernel's parameters lie in `values`, one word each.
struct BoundStep {
  std::size_t step = 0;
  Function function = nullptr;
  unsigned blocks = 0, threads = 0, shared_bytes = 0;
  /// workspace of a library's way, what a kernel keeps in memory
  std::uint64_t scratch_bytes = 0;
  std::vector<std::uint64_t> values = {};
  struct Map {
    const Program::TensorMap* map;
    std::int64_t rows;
    std::uint32_t element_bytes;
    /// that `encoded` is of
    Address address = 0;
    EncodedMap encoded = {};
  };
  std::vector<Map> maps = {};
  /// Which of the values are addresses of inputs and outputs: (value, port).
  std::vector<std::pair<std::size_t, std::size_t>> ports = {};
  std::shared_ptr<LibraryStep> library = nullptr;

  /// The workspace of the way that its library has selected counts from now on.
  void select_way(std::size_t way);
  void use_scratch(Address scratch);
};

/// Where things lie that steps read and write.
struct StepPlaces {
  Address arena = 0, error = 0;
  struct Port {
    std::size_t number;
    Address address;
  };
  /// by buffer: inputs and outputs of the segment
  std::map<std::uint32_t, Port> ports;
};

/// The calls of a segment for shapes that are bound, in their order; steps that have nothing to do
/// are left out. Scratch is to be given to them yet. Throws Error, naming the node, where a library
/// has nothing that computes it or a launch would be too large.
std::vector<BoundStep> bind_steps(const CudaModel& model, const BoundShapes& shapes,
                                  const Segment& segment, const StepPlaces& places);

}  // namespace tenon::cuda
