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

namespace tenon::inline runtime::cuda {

/// A launch with all addresses and extents resolved. `values` holds a kernel's parameters, one word
/// each.
struct BoundStep {
  std::size_t step = 0;
  Function function = nullptr;
  unsigned blocks = 0, threads = 0, shared_bytes = 0;
  /// Workspace of the selected library algorithm, or device scratch of a kernel.
  std::uint64_t scratch_bytes = 0;
  std::vector<std::uint64_t> values = {};
  struct Map {
    const Program::TensorMap* map;
    std::int64_t rows;
    std::uint32_t element_bytes;
    /// Address for which `encoded` was encoded.
    Address address = 0;
    EncodedMap encoded = {};
  };
  std::vector<Map> maps = {};
  /// Parameters that are addresses of inputs and outputs: (value, port).
  std::vector<std::pair<std::size_t, std::size_t>> ports = {};
  std::shared_ptr<LibraryStep> library = nullptr;
  /// Algorithm of the library.
  std::size_t variant = 0;

  /// Selects an algorithm of the library, the first if it does not offer that many, and its
  /// workspace size.
  void select_variant(std::size_t chosen);
  void use_scratch(Address scratch);
};

/// Library calls that were prepared for earlier shapes: preparing one takes up to 100 ms, and
/// requests repeat shapes. Keeps the most recently bound ones.
class LibraryStepCache {
 public:
  /// `call`: text form with its extents and the tuned algorithm; `make` prepares a missing one.
  template <class Make>
  std::shared_ptr<LibraryStep> find_or_make(const std::string& call, const Make& make) {
    Entry& entry = entries_[call];
    if (!entry.step) entry.step = make();
    entry.last_binding = binding_;
    return entry.step;
  }
  /// Starts a binding; drops calls of the oldest bindings above the limit.
  void begin_binding();

 private:
  struct Entry {
    std::shared_ptr<LibraryStep> step;
    std::uint64_t last_binding = 0;
  };
  std::size_t variant_count() const;

  std::map<std::string, Entry> entries_;
  std::uint64_t binding_ = 0;
};

/// Addresses of the buffers that steps read and write.
struct StepPlaces {
  Address arena = 0, error = 0;
  struct Port {
    std::size_t number;
    Address address;
  };
  /// Inputs and outputs of the segment, by buffer.
  std::map<std::uint32_t, Port> ports;
};

/// Resolves the launches of a segment for bound shapes, in order; steps without work are omitted.
/// The caller assigns scratch afterwards. Throws Error, naming the node, if no library algorithm
/// exists or a launch would be too large.
std::vector<BoundStep> bind_steps(const CudaModel& model, const BoundShapes& shapes,
                                  const Segment& segment, const StepPlaces& places,
                                  LibraryStepCache& library_steps);

}  // namespace tenon::inline runtime::cuda
