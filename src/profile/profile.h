#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What was seen of running a network, as plain data: when each step ran and where, what it had to
/// do, which kernel did it and why, where its buffers lie. A watched run fills it, or a document of
/// another system. Times are seconds from the start of the run that the timeline shows, the last
/// one.
struct Profile {
  /// Over all runs that were measured.
  struct Spread {
    double median = 0, p10 = 0, p90 = 0, least = 0;
  };
  /// Where things happen, one after the other: a stream of a device or a thread of the host.
  struct Lane {
    std::string name;
    bool is_device = false;
  };
  /// One piece of work: handed out at `start`, begun at `kern`, done at `end`.
  struct Span {
    std::uint32_t lane = 0;
    double start = 0, kern = 0, end = 0;
  };
  enum class Place : std::uint8_t { Input, Output, Constant, Arena };
  /// How a buffer got what it holds: made; made once more, or brought back from where it was put
  /// aside, to keep a budget.
  enum class Making : std::uint8_t { Made, Again, Back };
  struct Buffer {
    std::string name, dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    Place place = Place::Arena;
    /// in its arena, as planned
    std::uint64_t offset = 0;
    /// a program of several parts has one for each
    std::uint32_t arena = 0;
    /// The steps that it is alive for, both included.
    std::uint32_t first_step = 0, last_step = 0;
    /// The buffer whose memory it only shows.
    std::optional<std::uint32_t> inside = {};
    Making making = Making::Made;
  };
  /// Something that was said about a step: by a pass, or by a candidate to compute it.
  struct Remark {
    std::string who, text;
  };
  /// What the processor counted, of one run on one thread; 0 where it does not count that.
  struct Counters {
    double cycles = 0, instructions = 0, cache_misses = 0;
  };
  enum class Kind : std::uint8_t { Kernel, Operators, Copy };
  struct Step {
    /// what it computes and where that comes from: "conv+relu conv1"
    std::string name;
    /// what it makes first; steps of two runs are told to be the same by it
    std::string value;
    /// "conv", or the members of a group: "conv+add+relu"
    std::string op;
    Kind kind = Kind::Kernel;
    /// what the model's own author called the node
    std::string source;
    /// of a group: "y (relu)"
    std::vector<std::string> members;
    std::string kernel, candidate;
    /// what the candidates said, the chosen one first
    std::vector<Remark> why;
    /// what passes said
    std::vector<Remark> remarks;
    /// buffers
    std::vector<std::uint32_t> reads, writes;
    /// steps that make what it reads
    std::vector<std::uint32_t> after;
    /// that have to be done and moved, by the operators' definitions
    double flops = 0, bytes = 0;
    /// The same by MegEngine's formulas, under their names there; nothing where it counts none.
    std::optional<double> computation, memory;
    Spread seconds;
    /// of the last run
    std::vector<Span> device, host;
    std::optional<Counters> counters = {};

    /// What it took in the last run: on the device, or on the host where no device was watched.
    double last_seconds() const;
    /// of its first piece
    double start() const;
    /// of its last
    double end() const;
  };
  struct Symbol {
    std::string name;
    std::int64_t value = 0;
  };
  /// What one pass did.
  struct PassChange {
    std::string pass, change;
    double milliseconds = 0;
    std::uint64_t nodes_before = 0, nodes_after = 0;
    /// by value
    std::vector<Remark> remarks;
  };
  /// What the machine can do at most; zeros where nobody measured.
  struct Ceilings {
    double flops_per_s = 0;
    /// from memory
    double bytes_per_s = 0;
    /// from the caches
    double cache_bytes_per_s = 0;
    std::uint64_t cache_bytes = 0;
  };

  /// of the network
  std::string name;
  /// "tenon", "megengine"
  std::string origin;
  /// what the code is for: "x86-64-v4"
  std::string target;
  /// what it ran on
  std::string device;
  std::uint32_t thread_count = 1;
  std::uint32_t warm_up_runs = 0, runs = 0;
  /// the one that touches memory for the first time; among the warm-up
  double first_run_seconds = 0;
  /// whole runs
  Spread run_seconds;
  double last_run_seconds = 0;
  std::vector<Lane> lanes;
  /// in the order of the last run
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<Symbol> symbols;
  std::vector<PassChange> passes;
  Ceilings ceilings;
  std::uint64_t arena_bytes = 0, scratch_bytes = 0, constant_bytes = 0;
  /// of the arena, by a run; 0 where nobody looked
  std::uint64_t touched_bytes = 0;
  /// 0: none was asked for
  std::uint64_t budget_bytes = 0;
  /// what could not be measured, and why
  std::vector<std::string> notes;
};

/// The file form: JSON that `parse_profile` reads back unchanged.
std::string to_json(const Profile& profile);
/// Throws Error naming the place for text that is no such file or whose numbers refer to nothing.
Profile parse_profile(std::string_view text, std::string_view source);
/// Whether a file that starts like this is probably one.
bool is_profile(std::string_view head);

std::string to_string(Profile::Place place);
std::string to_string(Profile::Kind kind);
std::string to_string(Profile::Making making);

/// Of some numbers, in any order.
Profile::Spread spread_of(std::vector<double> samples);

}  // namespace tenon
