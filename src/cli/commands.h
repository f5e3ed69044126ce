#pragma once

#include "target/target_spec.h"
#include "train/trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

/// Output format of a subcommand.
enum class OutputFormat { Table, Json };

struct ShowOptions {
  std::string model;
  bool every_node = false, as_graph = false;
};
struct CheckOptions {
  std::string model;
};
struct ConvertOptions {
  std::string model, to, output, style, precision;
  /// 0: unchanged
  std::int64_t batch = 0;
  int opset = 0;
  /// kernels of the tuning cache
  bool kernels = false;
  /// target of the kernels; "true": times those of a device first
  std::string target, tune;
};
struct RunOptions {
  std::string model;
  std::vector<std::string> inputs, shapes;
  /// @DIR, @FILE.npz, and names of further values to return
  std::vector<std::string> outputs;
  std::string expect, save_inputs;
  /// pixel normalization
  std::vector<double> mean = {0}, scale = {1};
  std::int64_t batch = 0;
  double absolute = 1e-7, relative = 1e-3;
  int threads = 0;
  /// empty: compiled if possible
  std::string target;
  /// regardless of the file's extension
  bool trust_program = false;
  bool untuned = false;
  /// candidates to prefer wherever they are applicable
  std::vector<std::string> preferred;
  /// of all loops together; 0: unlimited
  std::int64_t max_trips = 0;
  std::string precision;
  /// "true", or a folder for the node's operands
  std::string check_nan;
  /// 0: any magnitude
  double check_range = 0;
  /// DIR[:PATTERN]
  std::string dump_values;
  /// @DIR of .npz files with many samples each; empty: one run
  std::string data;
};
struct DiffOptions {
  std::string a, b;
  std::vector<std::string> inputs, shapes;
  /// "reference,cpu"
  std::string targets;
  double absolute = 1e-5, relative = 1e-3;
  int threads = 0, top = 30;
  bool all = false;
};
/// Selection and options of passes.
struct PassSelection {
  std::string stop_after;
  std::vector<std::string> passes, without, set;
};
struct OptOptions : PassSelection {
  std::string model, to = "tenon", output, style;
  /// prints them regardless of size
  bool weights = false;
  bool print = false, verify_each = false, time_passes = false, kernels = false;
  int trials = 4;
};
struct ExplainOptions : PassSelection {
  std::string model, node;
  /// mesh of training ranks: explains the node's sharding there
  std::string parallel;
  /// batch of that training
  std::int64_t batch = 32;
  bool untuned = false;
  std::vector<std::string> preferred;
  std::string target, precision;
};
/// Services of all passes of a compilation.
struct StageOptions {
  std::string stop_after, dump_dir;
  std::vector<std::string> without, print_after;
  bool print_after_all = false, time_passes = false, verify_each = false;
};
struct PassesCommandOptions {
  std::string cpu = "native", target, precision;
};
struct CompileCommandOptions : StageOptions {
  std::string model, output, cpu = "native", tune, target, precision, constants;
  std::int64_t batch = 0;
  /// "true": all weights
  std::vector<std::string> swappable_weights;
  std::vector<std::string> specialised_shapes;
  std::vector<std::string> preferred;
  /// the representation to print; may be empty
  std::string print;
  bool print_code = false, no_winograd = false, untuned = false;
  /// thread count that kernels are chosen for
  int threads = 0;
};
struct QuantizeCommandOptions {
  std::string model, calibrate, scheme = "int8", ranges = "mse", output, report;
  std::vector<std::string> skip;
  /// or relay, with its stages and fields
  std::string pipeline = "tenon", stop_after;
  std::vector<std::string> set;
  bool print = false;
  /// 0: any
  double target_error = 0;
  /// lists every node in the table
  bool all = false;
  int threads = 0;
};
struct TuneCommandOptions {
  std::string model, export_to, import_from, cpu = "native", seconds, target, precision;
  bool show = false, all = false, clear = false, as_is = false, no_winograd = false;
  int threads = 0;
};
struct BenchOptions {
  std::int64_t batch = 0;
  std::string model, output, save_inputs, cpu = "native", target, precision;
  std::vector<std::string> inputs, shapes, preferred;
  int threads = 0;
  double duration_s = 2;
  bool every_step = false, no_winograd = false, untuned = false, trust_program = false;
  std::string tune;
  /// an optimizer: times a training step with it
  std::string train;
  std::string loss, budget;
  bool swap = false, split = false;
  int warm_up_runs = 1, min_iterations = 3, max_iterations = 100000;
  /// exact number, if given
  int iterations = 0;
  /// on a device: contexts in flight
  int contexts = 2;
  std::string percentiles = "90,99";
};
struct ArenaOptions {
  std::string file, capacity, output;
  std::uint64_t alignment = 1, node_limit = 6'000'000;
};
struct PlanOptions {
  std::string model, budget, device, reading = "retained", method = "search", output, html;
  bool recompute = false, swap = false, split = false, frontier = false, compare = false,
       no_in_place = false;
  std::uint64_t alignment = 64, step_limit = 0;
  /// of a compiled training step
  std::string target, precision;
  // A training step on many ranks.
  /// optimizer; loss; a description in JSON; "8,64,1024"
  std::string train, loss, cluster, ranks;
  /// samples of each rank
  std::int64_t batch = 0;
};
struct ProfileOptions {
  std::int64_t batch = 0;
  std::string model, cpu = "native", tune, target, precision;
  std::vector<std::string> inputs, shapes, preferred;
  int threads = 0, warm_up_runs = 3, iterations = 0, top = 20;
  double duration_s = 1;
  bool no_winograd = false, untuned = false, table = false, no_counters = false, overhead = false,
       trust_program = false;
  std::string report, megengine, trace, tensorscope, aitemplate, dot, svg, save, compare;
  /// an optimizer: profiles a training step with it
  std::string train, loss;
  /// memory limit of a run
  std::string budget;
  /// permits offloading to a file
  bool swap = false;
  /// permits splitting the batch
  bool split = false;
  /// as in a run, which then precedes the profile
  std::string check_nan, dump_values;
  double check_range = 0;
  /// table, json, csv or md
  std::string format = "table";
};
struct ReportOptions {
  std::vector<std::string> profiles;
  std::string output, format = "table";
  int top = 20;
};
struct TrainCommandOptions {
  std::string model, loss, optimizer, schedule, output, curve, target, precision;
  /// mesh of a launcher's ranks: data:2,tensor:2
  std::string parallel;
  /// always, if-any; empty: never
  std::string resume;
  /// bytes
  std::string bucket;
  /// nothing, moments, gradients, parameters; empty: the fastest
  std::string split_states;
  train::TrainerOptions trainer;
  /// prints the graph of a step instead of training
  bool print = false;
};
struct OpsOptions {
  std::string name;
};
struct ConformanceCommandOptions {
  std::vector<std::string> folders;
  std::string filter, expected_failures, target = "reference", keep;
  double absolute = 1e-7, relative = 1e-3;
  bool symbolic = false, vary = false;
  std::size_t every = 1;
};

/// Each returns the exit code; errors are thrown as Error.
int demo(OutputFormat format);
int show(const ShowOptions& options, OutputFormat format);
int check(const CheckOptions& options, OutputFormat format);
int convert(const ConvertOptions& options, OutputFormat format);
int run_on_data(const RunOptions& options, OutputFormat format);
int plan_on_cluster(const PlanOptions& options, OutputFormat format);
int run(const RunOptions& options, OutputFormat format);
int opt(const OptOptions& options, OutputFormat format);
int compile(const CompileCommandOptions& options, OutputFormat format);
int passes(const PassesCommandOptions& options, OutputFormat format);
int tune(const TuneCommandOptions& options, OutputFormat format);
int bench(const BenchOptions& options, OutputFormat format);
int train(const TrainCommandOptions& options, OutputFormat format);
int quantize(const QuantizeCommandOptions& options, OutputFormat format);
int explain(const ExplainOptions& options, OutputFormat format);
int arena(const ArenaOptions& options, OutputFormat format);
int plan(const PlanOptions& options, OutputFormat format);
int diff(const DiffOptions& options, OutputFormat format);
int profile(const ProfileOptions& options);
int report(const ReportOptions& options);
int ops(const OpsOptions& options, OutputFormat format);
int doctor(OutputFormat format);
int conformance(const ConformanceCommandOptions& options, OutputFormat format);

/// Completions of a shell.
struct CompletedCommand {
  std::string name, summary;
  /// "--format"
  std::vector<std::string> options;
};
/// Prints a script for a shell.
int completions(const std::string& shell, const std::vector<CompletedCommand>& commands);

/// Returns whether value inspection of a target compiles. Throws Error for a device, which does not
/// support it.
bool is_observed_compiled(const std::string& target);
/// `run` with inspection of values inside the network.
int run_observed(const RunOptions& options, OutputFormat format);

/// Returns whether a `--target` is compiled. Throws Error (Usage) for an unknown target.
bool is_compiled_target(const std::string& target);
/// Combines `--target`, `--cpu` and `--precision`. Throws Error (Usage) if the result is not a
/// compilation target.
TargetSpec target_of(const std::string& target, const std::string& cpu,
                     const std::string& precision);

/// Parses the command line and runs the subcommand; returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace tenon::cli
