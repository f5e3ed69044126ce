#pragma once

#include "frontends/aitemplate/tables.h"
#include "ir/graph.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::aitemplate {

/// Which kernels were found to be fastest for a node of a graph. Travels in the graph's metadata.
struct KernelChoices {
  struct Choice {
    /// values of the symbol
    std::int64_t lo = 0, hi = 0;
    std::string kernel;
  };
  /// empty: one choice, whatever the extents
  std::string symbol;
  std::vector<Choice> choices;
};
void note_choices(Graph& graph, ValueId result, const KernelChoices& choices);
std::optional<KernelChoices> noted_choices(const Graph& graph, ValueId result);

/// The conditions and kernels of a convolution after they were profiled: the batch in ranges.
/// Nothing where the choices are about something else; `batch` is the graph's own extent.
std::optional<ExecPath> profiled_convolution(const std::vector<DimRow>& image, const Dim& batch,
                                             const KernelChoices& choices);

/// The same of a product, by M, N, K and, where it is one of many, B.
struct ProductExtents {
  struct Extent {
    std::string name;
    std::int64_t least = 0, greatest = 0;
    /// that it is, and nothing else
    std::string symbol;
  };
  std::vector<Extent> extents;
};
std::optional<ExecPath> profiled_product(const ProductExtents& product,
                                         const KernelChoices& choices);

/// A dump with the kernels that a graph's notes know, where the dump has none yet.
Dump with_kernels(Dump dump, const Graph& noted);

/// A kernel's name as AITemplate writes one: letters, digits and `_`.
std::string algorithm_name(const std::string& kernel);

}  // namespace tenon::aitemplate
