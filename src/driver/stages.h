#pragma once

#include "base/error.h"
#include "codegen/compile.h"
#include "driver/pipeline.h"
#include "nests/nest_pass.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::driver {

/// Text form of a compilation after one of its stages.
struct StageText {
  enum class Kind : std::uint8_t { Graph, Nests, Tasks, Plan, Program };
  Kind kind = Kind::Graph;
  /// Name of a pass; "tasks", "plan" or "program".
  std::string name;
  std::string text;
};
/// Returns the suffix of a file with the text: ".tenon", ".nest", ".tasks", ".plan", ".program".
std::string_view suffix_of(StageText::Kind kind);

/// Services of all passes of a compilation, over graphs and over nests.
struct PassServices {
  /// Names of passes to leave out.
  std::vector<std::string> without = {};
  /// Compares results before and after each pass on random inputs.
  bool verify_each = false;
  /// Fills `CompileRecord::nest_passes`.
  bool reports_nests = false;
  /// Callback after each stage, in order. Nests are those of all nodes with different nests.
  std::function<void(const StageText& stage)> on_stage = {};
};

/// Collects texts and times of passes over nests, and verifies the passes.
class NestObserver {
 public:
  /// `list` has the target's passes; it and the services must outlive the object.
  NestObserver(std::span<const nests::NestPassInfo> list, const PassServices& services);

  /// Returns options that report to this object, which must outlive them.
  nests::NestPassOptions options();
  /// Returns a report for each pass that ran, in order. Sizes are numbers of nests.
  std::vector<PassReport> reports() const;
  /// Calls `on_stage` for each pass that ran, in order.
  void emit() const;

 private:
  struct Seen {
    PassReport report;
    std::size_t runs = 0, changes = 0;
    std::string text;
  };
  void see(const nests::NestPassRun& run);

  std::span<const nests::NestPassInfo> list_;
  const PassServices& services_;
  std::vector<Seen> seen_;  // By pass of the list.
};

/// Throws Error (Usage) for the value of an option that names no pass of a compilation.
void require_pass(const std::string& name, const PipelineOptions& graph_passes,
                  std::span<const nests::NestPassInfo> nest_passes, std::string_view option);
/// Adds the services to graph passes. Throws Error (Usage) for an unknown name.
void serve(PipelineOptions& passes, const PassServices& services,
           std::span<const nests::NestPassInfo> nest_passes);

/// A pass over nests that changes a result.
class NestPassError : public Error {
 public:
  NestPassError(const nests::NestPassRun& run, const std::string& difference);
  const std::string& pass() const { return pass_; }
  /// Label of the node: "conv+relu conv1".
  const std::string& node() const { return node_; }

 private:
  std::string pass_, node_;
};

/// Compiles with the options of an observer. If it finds a pass that changes a result, reduces the
/// graph: the error then has the smallest one found.
codegen::Compiled compile_verified(const Graph& graph, const codegen::CompileOptions& options);

}  // namespace tenon::driver
