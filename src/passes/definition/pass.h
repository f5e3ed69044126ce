#pragma once

#include "ir/graph.h"
#include "ir/state_ports.h"
#include "passes/definition/remarks.h"
#include "target/cpu_facts.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Improvements of quantize-partition over the reference implementation.
struct QuantizePartitionOptions {
  /// type of values between sections
  DType dtype = DType::I8;
  /// one pair of cast_hint and stop_fusion per value instead of per reader
  bool share = false;
  /// inserts such a pair at the graph's outputs too
  bool close_outputs = true;
  /// allows a section as right operand of a product
  bool multiply_right = false;
};

/// User options of all passes; each pass reads its own.
struct PassOptions {
  /// Target that the graph is compiled for.
  TargetFacts target = cpu_facts("zen4");
  std::int64_t max_constant_bytes = std::int64_t{1} << 20;
  /// Narrow type of `assign-precision`: "" for f16, or "bf16".
  std::string assign_precision_to;
  /// Grouping of `fuse`: "" by bytes moved, "relay" by the rule of Apache TVM's Relay, with groups
  /// of at most this depth.
  std::string fuse_mode;
  std::size_t fuse_max_depth = 256;
  /// Mode of `choose-layouts`: "" by cost, "tensorflow" by TensorFlow's rule, "none" to skip; and
  /// the layout to convert to: "" for channels last (NHWC), or "NCHW".
  std::string layout_mode, layout_to;
  /// Mode of `order`: "" for the lowest live peak, "megengine" for MegEngine's order.
  std::string order_mode;
  /// States that are updated in place: `order` puts their readers first.
  std::vector<StatePorts> states;
  QuantizePartitionOptions quantize_partition;
  /// Receives the reasons why a pass did or did not change a node; null if not needed.
  Remarks* remarks = nullptr;
};

/// Guarantee of a pass about results: bit-identical (any NaN equals any other), identical except
/// for rounding, or identical within the precision and range of a narrower type.
enum class Accuracy : std::uint8_t { Rounds, Exact, Narrows };

/// Sets an option written as `pass.option=value`: `fuse.mode=relay`. Throws Error (Usage) for an
/// unknown option or value.
void set_option(PassOptions& options, std::string_view setting);

/// A graph rewrite: a stateless function. The driver times it, verifies its result and can skip it.
struct Pass {
  /// name of the function, with hyphens
  std::string name;
  Graph (*run)(Graph graph, const PassOptions& options);
  Accuracy accuracy = Accuracy::Rounds;
};

/// Returns every pass of `passes/list.inc`, by name.
std::span<const Pass> all_passes();
/// Throws Error with the nearest name for an unknown pass.
const Pass& find_pass(std::string_view name);

}  // namespace tenon
