#pragma once

#include "nests/nest_builder.h"
#include "nests/winograd_weights.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::nests {

/// The nests of a node, or those that replace one of them, while passes rewrite them.
struct NestWork {
  NestSequence sequence;
  /// By buffer of the sequence; buffers that passes add are not constant.
  std::vector<bool> is_constant;
  /// Constants that passes compute from operands, for buffers of role Derived.
  std::vector<WinogradWeights> derived = {};
  /// "conv+relu conv1", for reports.
  std::string name = "";
};

/// Returns the nests as text.
std::string to_string(const NestWork& work);

/// Name of a pass, and the reason for its position in the list of its target.
struct NestPassInfo {
  /// "tile-and-fuse"; differs from the names of graph passes.
  std::string_view name;
  std::string_view reason;
};

/// A rewrite of loop nests: keeps the results of the sequence. The runner can skip, time, print and
/// verify it.
struct NestPass : NestPassInfo {
  std::function<void(NestWork& work)> run;
};

/// One run of a pass.
struct NestPassRun {
  const NestPassInfo& pass;
  const NestWork &before, &after;
  double elapsed_ms = 0;
};

struct NestPassOptions {
  /// Names of passes to skip.
  std::vector<std::string> without = {};
  /// Callback after each run of a pass.
  std::function<void(const NestPassRun& run)> on_pass = {};
};

/// Runs the passes in order.
void run_passes(std::span<const NestPass> passes, NestWork& work, const NestPassOptions& options);

/// Returns the pass of that name from a target's list with a function.
NestPass pass_of(std::span<const NestPassInfo> list, std::string_view name,
                 std::function<void(NestWork& work)> run);

}  // namespace tenon::nests
