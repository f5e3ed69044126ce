#pragma once

#include "ir/graph.h"
#include "passes/definition/remarks.h"
#include "target/cpu_facts.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::passes {

/// Options of `quantize-partition`, which follows TVM's QuantizePartition. A section is a group of
/// nodes that later stages may compute in 8-bit integers: a convolution and the biases, clips,
/// ReLUs and max-pools after it. A value that leaves its section passes through a pair of nodes,
/// cast_hint and stop_fusion.
struct QuantizePartitionOptions {
  /// Integer type in the cast_hint.
  DType dtype = DType::I8;
  /// Inserts one pair per value; otherwise, as in TVM, one per reader.
  bool share = false;
  /// Inserts a pair at the graph's outputs too.
  bool close_outputs = true;
  /// Allows a multiplication whose right operand comes from a section; otherwise it is an error.
  bool multiply_right = false;
};

/// User options of all passes; each pass reads its own. The empty string is the default of every
/// option of type string.
struct PassOptions {
  /// Target that the graph is compiled for.
  TargetFacts target = cpu_facts("zen4");
  /// Largest constant, in bytes, that `fold-constants` and `fold-scales` create (1 MiB). Set by
  /// `fold-constants.max-bytes`.
  std::int64_t max_constant_bytes = std::int64_t{1} << 20;
  /// Narrow type of `assign-precision`: "" for f16, or "bf16".
  std::string assign_precision_to;
  /// Grouping of `fuse`: "" by bytes moved, or "relay" by the rule of Apache TVM's Relay.
  std::string fuse_mode;
  /// Largest group of `fuse` in mode "relay", in nodes; no effect in the default mode.
  std::size_t fuse_max_depth = 256;
  /// Mode of `choose-layouts`: "" by cost, "tensorflow" by TensorFlow's rule, "none" to skip; and
  /// the layout to convert to: "" for the target's preferred layout, or "NCHW".
  std::string layout_mode, layout_to;
  /// Mode of `order`: "" for the lowest live peak, "megengine" for MegEngine's order.
  std::string order_mode;
  QuantizePartitionOptions quantize_partition;
  /// Receives the reasons why a pass did or did not change a node; null if not needed. Owned by the
  /// caller.
  Remarks* remarks = nullptr;
};

/// Guarantee of a pass about the results of the graph.
enum class Accuracy : std::uint8_t {
  /// Identical except for rounding. The default.
  Rounds,
  /// Bit-identical; any NaN equals any other.
  Exact,
  /// Identical within the precision and range of a narrower type.
  Narrows
};

/// Sets an option written as `pass.option=value`: `fuse.mode=relay`. Names of options are in
/// `pass_options.cpp`. Throws Error (Usage) for an unknown option or value.
void set_option(PassOptions& options, std::string_view setting);

/// A graph rewrite: a stateless function. The driver times it, verifies its result and can skip it.
/// To add a pass, define the function and add a line `TENON_PASS(function, Accuracy)` to
/// `passes/list.inc`; it runs by default once the driver's pipeline names it.
struct Pass {
  /// Name of the function, with hyphens: "fold-constants" for `fold_constants`.
  std::string name;
  /// Consumes the graph and returns the rewritten one. Throws Error for a graph that it refuses.
  Graph (*run)(Graph graph, const PassOptions& options);
  Accuracy accuracy = Accuracy::Rounds;
};

/// Returns every pass of `passes/list.inc`, in the order of the list, which is not the order of
/// execution.
std::span<const Pass> all_passes();
/// Throws Error with the nearest name for an unknown pass.
const Pass& find_pass(std::string_view name);

}  // namespace tenon::passes
