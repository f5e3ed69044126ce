#include "runtime/cuda/bound_steps.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::inline runtime::cuda {
namespace {

// Parses "cudnn#3": index 3 in the library's list of algorithms, found by tuning.
std::size_t tuned_way(const std::string& candidate) {
  const std::size_t mark = candidate.find('#');
  return mark == std::string::npos ? 0 : std::strtoull(candidate.c_str() + mark + 1, nullptr, 10);
}

std::shared_ptr<LibraryStep> library_step(const std::string& description,
                                          const std::vector<std::int64_t>& extents) {
  const LibraryCall call = parse_library_call(description);
  if (extents.size() != extent_count(call.kind)) {
    throw Error("a library's function takes another number of extents")
        .expected(extent_count(call.kind))
        .got(extents.size());
  }
  return make_library_step(call, extents);
}

class StepBinder {
 public:
  StepBinder(const CudaModel& model, const BoundShapes& shapes, const StepPlaces& places,
             LibraryStepCache& library_steps)
      : model_(model),
        program_(model.program()),
        shapes_(shapes),
        places_(places),
        library_steps_(library_steps) {}

  /// Returns false if the step has no work.
  bool bind(const Program::Step& step, BoundStep& bound) const {
    const Program::Kernel& kernel = program_.kernels[step.kernel];
    for (const std::uint32_t id : step.buffers) {
      const auto port = places_.ports.find(id);
      const bool is_port = port != places_.ports.end();
      if (is_port) bound.ports.emplace_back(bound.values.size(), port->second.number);
      bound.values.push_back(is_port ? port->second.address : address_of(id));
    }
    std::vector<std::int64_t> extents;
    for (const Extent& extent : step.extents) extents.push_back(shapes_.value_of(extent, step));
    return kernel.library.empty() ? bind_kernel(step, kernel, extents, bound)
                                  : bind_library(step, kernel, extents, bound);
  }

 private:
  Address address_of(std::uint32_t id) const {
    const bool is_constant = program_.buffers[id].place == Program::BufferKind::Constant;
    return is_constant ? model_.constants() + program_.buffers[id].offset
                       : places_.arena + shapes_.offsets[id];
  }

  bool bind_library(const Program::Step& step, const Program::Kernel& kernel,
                    const std::vector<std::int64_t>& extents, BoundStep& bound) const {
    // The last buffer is the result; it may be empty.
    if (shapes_.bytes_of(step.buffers.back()) == 0) return false;
    std::string call = concat(kernel.library, " ", step.candidate);
    for (const std::int64_t extent : extents) call += concat(" ", extent);
    try {
      bound.library =
          library_steps_.find_or_make(call, [&] { return library_step(kernel.library, extents); });
    } catch (Error& error) {
      throw error.at("node '", step.value, "'");
    }
    bound.select_variant(tuned_way(step.candidate));
    return true;
  }

  bool bind_kernel(const Program::Step& step, const Program::Kernel& kernel,
                   const std::vector<std::int64_t>& extents, BoundStep& bound) const {
    const std::int64_t blocks = shapes_.value_of(step.work, step);
    if (blocks <= 0) return false;
    if (blocks > std::int64_t{0x7fffffff}) {
      throw Error("a value is too large for one launch", ErrorKind::Unsupported)
          .at("node '", step.value, "'")
          .got(blocks, " blocks");
    }
    bound.function = model_.function(step.kernel);
    bound.blocks = static_cast<unsigned>(blocks);
    bound.threads = kernel.threads;
    bound.shared_bytes = kernel.shared_bytes;
    for (const Program::TensorMap& map : kernel.maps) bound.maps.push_back(bind_map(step, map));
    if (kernel.cluster == 0)
      bound.blocks = std::min(bound.blocks, static_cast<unsigned>(driver().multiprocessors));
    for (const std::int64_t extent : extents)
      bound.values.push_back(static_cast<std::uint64_t>(extent));
    bound.values.push_back(0);  // scratch
    bound.values.push_back(places_.error);
    const auto own = static_cast<std::uint64_t>(shapes_.value_of(kernel.scratch_bytes, step));
    bound.scratch_bytes = own * bound.blocks;
    return true;
  }

  BoundStep::Map bind_map(const Program::Step& step, const Program::TensorMap& map) const {
    const std::int64_t rows = shapes_.value_of(map.rows, step);
    constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // kernels count them in 32 bits
    if (rows > kMostRows) {
      throw Error("a value is too large for one launch", ErrorKind::Unsupported)
          .at("node '", step.value, "'")
          .got(rows, " rows");
    }
    const std::uint32_t buffer = step.buffers[map.buffer];
    const std::uint32_t element_bytes = program_.buffers[buffer].element_bytes;
    // Kernels copy nothing from an empty tensor.
    if (rows == 0) return {.map = &map, .rows = 0, .element_bytes = element_bytes};
    std::uint64_t bytes = 0;
    if (rows < 1 || (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(rows), map.pitches.back(), &bytes) ||
        __builtin_mul_overflow(bytes, std::uint64_t{element_bytes}, &bytes) ||
        bytes > shapes_.bytes_of(buffer)) {
      throw Error("the program does not hold together")
          .at("node '", step.value, "'")
          .got("a tensor map larger than its buffer")
          .hint("compile the model again");
    }
    return {.map = &map, .rows = rows, .element_bytes = element_bytes};
  }

  const CudaModel& model_;
  const Program& program_;
  const BoundShapes& shapes_;
  const StepPlaces& places_;
  LibraryStepCache& library_steps_;
};

}  // namespace

void BoundStep::select_variant(std::size_t chosen) {
  variant = chosen < library->variant_count() ? chosen : 0;
  scratch_bytes = library->workspace_bytes(variant);
}

void BoundStep::use_scratch(Address scratch) {
  if (!library) values[values.size() - 2] = scratch;
}

std::size_t LibraryStepCache::variant_count() const {
  std::size_t count = 0;
  for (const auto& [call, entry] : entries_) count += entry.step ? entry.step->variant_count() : 0;
  return count;
}

void LibraryStepCache::begin_binding() {
  // Memory grows with the plans that libraries keep: one per algorithm of a call.
  constexpr std::size_t kMostVariants = 4096;
  ++binding_;
  while (variant_count() > kMostVariants) {
    std::uint64_t oldest = binding_;
    for (const auto& [call, entry] : entries_) oldest = std::min(oldest, entry.last_binding);
    std::erase_if(entries_, [&](const auto& each) { return each.second.last_binding == oldest; });
  }
}

std::vector<BoundStep> bind_steps(const CudaModel& model, const BoundShapes& shapes,
                                  const Segment& segment, const StepPlaces& places,
                                  LibraryStepCache& library_steps) {
  library_steps.begin_binding();
  const StepBinder binder(model, shapes, places, library_steps);
  std::vector<BoundStep> bound;
  for (std::size_t k = segment.begin; k < segment.end; ++k) {
    const Program::Step& step = model.program().steps[k];
    if (!shapes.runs(step)) continue;
    BoundStep ready;
    ready.step = k;
    if (binder.bind(step, ready)) bound.push_back(std::move(ready));
  }
  return bound;
}

}  // namespace tenon::inline runtime::cuda
