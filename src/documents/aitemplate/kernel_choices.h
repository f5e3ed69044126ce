#pragma once

#include "documents/aitemplate/tables.h"
#include "documents/kernel_choices.h"
#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::documents::aitemplate {

/// Returns the conditions and kernels of a profiled convolution: the batch in ranges. `batch` is
/// the graph's own extent. Returns nullopt if the choices do not match.
std::optional<ExecPath> profiled_convolution(const std::vector<DimRow>& image, const Dim& batch,
                                             const KernelChoices& choices);

/// Returns the same for a matrix product, by M, N, K and, if batched, B.
struct GemmExtents {
  struct Extent {
    std::string name;
    std::int64_t least = 0, greatest = 0;
    /// Set if the extent is this single symbol.
    std::string symbol;
  };
  std::vector<Extent> extents;
};
std::optional<ExecPath> profiled_gemm(const GemmExtents& product, const KernelChoices& choices);

/// Inserts the kernels of a graph's metadata into a dump without kernels.
Dump with_kernels(Dump dump, const Graph& noted);

/// Converts to a kernel name as AITemplate writes it: letters, digits and `_`.
std::string algorithm_name(const std::string& kernel);

}  // namespace tenon::documents::aitemplate
