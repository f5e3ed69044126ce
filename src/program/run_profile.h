#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline program {

/// Profile of a network's run, as plain data: time and lane of each step, its work, the selected
/// kernel with the reason, and its buffers. Filled by an observed run or from another system's
/// document. Times are seconds from the start of the run in the timeline, the last one.
struct Profile {
  /// Distribution over all measured runs.
  struct Spread {
    double median = 0, p10 = 0, p90 = 0, least = 0;
  };
  /// A sequential timeline track: a stream of a device or a thread of the host.
  struct Lane {
    std::string name;
    bool is_device = false;
  };
  /// One interval of work: enqueued at `start`, begun at `kern`, finished at `end`.
  struct Span {
    std::uint32_t lane = 0;
    double start = 0, kern = 0, end = 0;
  };
  enum class BufferKind : std::uint8_t { Input, Output, Constant, Arena };
  /// Origin of a buffer's content: computed, recomputed, or swapped in to keep a budget.
  enum class Making : std::uint8_t { Made, Again, Back };
  struct Buffer {
    std::string name, dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    BufferKind place = BufferKind::Arena;
    /// Planned offset in its arena.
    std::uint64_t offset = 0;
    /// Index of the arena; a program of several parts has one for each.
    std::uint32_t arena = 0;
    /// Live range in steps, inclusive.
    std::uint32_t first_step = 0, last_step = 0;
    /// Buffer whose memory this view shows.
    std::optional<std::uint32_t> inside = {};
    Making making = Making::Made;
  };
  /// A remark about a step from a pass or a candidate.
  struct Remark {
    std::string who, text;
  };
  /// Hardware performance counters of one run on one thread; 0 if unavailable.
  struct Counters {
    double cycles = 0, instructions = 0, cache_misses = 0;
  };
  enum class Kind : std::uint8_t { Kernel, Operators, Copy };
  struct Step {
    /// Operators and their origin: "conv+relu conv1".
    std::string name;
    /// First result; identifies the step across runs.
    std::string value;
    /// "conv", or the members of a group: "conv+add+relu".
    std::string op;
    Kind kind = Kind::Kernel;
    /// Name of the node in the original model.
    std::string source;
    /// Members of a group: "y (relu)".
    std::vector<std::string> members;
    std::string kernel, candidate;
    /// Verdicts of the candidates, the selected one first.
    std::vector<Remark> why;
    /// Remarks of passes.
    std::vector<Remark> remarks;
    /// Buffer indices.
    std::vector<std::uint32_t> reads, writes;
    /// Steps that produce its operands.
    std::vector<std::uint32_t> after;
    /// Work and minimum traffic by the operators' definitions.
    double flops = 0, bytes = 0;
    /// The same by MegEngine's formulas, under their names there; nullopt if undefined.
    std::optional<double> computation, memory;
    Spread seconds;
    /// Intervals of the last run.
    std::vector<Span> device, host;
    std::optional<Counters> counters = {};

    /// Duration in the last run: on the device, or on the host if no device was observed.
    double last_seconds() const;
    /// Start of the first interval.
    double start() const;
    /// End of the last interval.
    double end() const;
  };
  struct Symbol {
    std::string name;
    std::int64_t value = 0;
  };
  /// Changes and time of one pass.
  struct PassChange {
    std::string pass, change;
    double milliseconds = 0;
    std::uint64_t nodes_before = 0, nodes_after = 0;
    /// Remarks by value.
    std::vector<Remark> remarks;
  };
  /// Measured ceilings of the machine for the roofline; zero if not measured.
  struct Ceilings {
    double flops_per_s = 0;
    /// Memory bandwidth.
    double bytes_per_s = 0;
    /// Cache bandwidth.
    double cache_bytes_per_s = 0;
    std::uint64_t cache_bytes = 0;
  };

  /// Name of the network.
  std::string name;
  /// "tenon", "megengine".
  std::string origin;
  /// Target of the code: "x86-64-v4".
  std::string target;
  /// Processor or device of the run.
  std::string device;
  std::uint32_t thread_count = 1;
  std::uint32_t warm_up_runs = 0, runs = 0;
  /// First run, which touches memory for the first time; part of the warm-up.
  double first_run_seconds = 0;
  /// Duration of whole runs.
  Spread run_seconds;
  double last_run_seconds = 0;
  std::vector<Lane> lanes;
  /// In execution order of the last run.
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<Symbol> symbols;
  std::vector<PassChange> passes;
  Ceilings ceilings;
  std::uint64_t arena_bytes = 0, scratch_bytes = 0, constant_bytes = 0;
  /// Bytes of the arena that a run touched; 0 if not measured.
  std::uint64_t touched_bytes = 0;
  /// 0: no budget.
  std::uint64_t budget_bytes = 0;
  /// Missing measurements with their reasons.
  std::vector<std::string> notes;
};

std::string to_string(Profile::BufferKind place);
std::string to_string(Profile::Kind kind);
std::string to_string(Profile::Making making);

/// Returns the distribution of samples in any order.
Profile::Spread spread_of(std::vector<double> samples);

}  // namespace tenon::inline program
