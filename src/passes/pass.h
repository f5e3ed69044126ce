#pragma once

#include "ir/graph.h"
#include "ir/state_ports.h"
#include "passes/remarks.h"
#include "target/cpu_facts.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Where quantize-partition may do better than the reference it follows by default.
struct QuantizePartitionOptions {
  /// that values between sections may be held in
  DType dtype = DType::I8;
  /// one pair of cast_hint and stop_fusion a value, not a reader
  bool share = false;
  /// the graph's outputs go through such a pair too
  bool close_outputs = true;
  /// a section may be the right operand of a product
  bool multiply_right = false;
};

/// What a user can set about passes; a pass reads what concerns it.
struct PassOptions {
  /// What the graph is made ready for.
  TargetFacts target = cpu_facts("zen4");
  std::int64_t max_constant_bytes = std::int64_t{1} << 20;
  /// The narrow type of `assign-precision`: "" for f16, or "bf16".
  std::string assign_precision_to;
  /// How `fuse` groups: "" by bytes moved, "relay" as Apache TVM does, at most this many nodes
  /// deep.
  std::string fuse_mode;
  std::size_t fuse_max_depth = 256;
  /// How `choose-layouts` chooses: "" by cost, "tensorflow" as that system does, "none" not at all;
  /// and which order it leads to: "" for channels last (NHWC), or "NCHW".
  std::string layout_mode, layout_to;
  /// How `order` orders: "" for the least live peak, "megengine" as that system does.
  std::string order_mode;
  /// What is to lie where it lay in the run before: `order` puts those that read it first.
  std::vector<StatePorts> states;
  QuantizePartitionOptions quantize_partition;
  /// Where a pass says why it did or did not touch a node; null where nobody asks.
  Remarks* remarks = nullptr;
};

/// What a pass promises about results: the same bits (of NaN any), the same but for rounding, or
/// the same as far as a narrower type reaches in digits and range.
enum class Accuracy : std::uint8_t { Rounds, Exact, Narrows };

/// Sets what a user writes as `pass.option=value`: `fuse.mode=relay`. Throws an Error (Usage) for
/// an option that is none and a value that it cannot have.
void set_option(PassOptions& options, std::string_view setting);

/// A rewrite of a graph: a function without state. The driver times it, verifies what it returns
/// and lets it be left out.
struct Pass {
  /// the function's, with hyphens
  std::string name;
  Graph (*run)(Graph graph, const PassOptions& options);
  Accuracy accuracy = Accuracy::Rounds;
};

/// Every pass of `passes/list.inc`, by name.
std::span<const Pass> all_passes();
/// Throws an Error that offers the nearest name.
const Pass& find_pass(std::string_view name);

}  // namespace tenon
