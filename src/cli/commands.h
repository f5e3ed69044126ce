#pragma once

#include "driver/training/trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::cli {

/// How a subcommand shows its result.
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
  /// 0: as it is
  std::int64_t batch = 0;
  int opset = 0;
  /// those that the tuning cache knows
  bool kernels = false;
  /// whose kernels; "true": those of a device are timed first
  std::string target, tune;
};
struct RunOptions {
  std::string model;
  std::vector<std::string> inputs, shapes;
  /// @DIR, @FILE.npz, and names of values to give out
  std::vector<std::string> outputs;
  std::string expect, save_inputs;
  /// of the pixels of images
  std::vector<double> mean = {0}, scale = {1};
  std::int64_t batch = 0;
  double absolute = 1e-7, relative = 1e-3;
  int threads = 0;
  /// empty: compiled if possible
  std::string target;
  /// whatever its file is called
  bool trust_program = false;
  bool untuned = false;
  /// candidates that are taken wherever they accept
  std::vector<std::string> preferred;
  /// of all loops together; 0: any number
  std::int64_t max_trips = 0;
  std::string precision;
  /// "true" or a folder for what the node read
  std::string check_nan;
  /// 0: any magnitude
  double check_range = 0;
  /// DIR[:PATTERN]
  std::string dump_values;
  /// @DIR of .npz files, each of many samples; empty: one run
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
/// Which passes run, and how.
struct PassChoice {
  std::string stop_after;
  std::vector<std::string> passes, without, set;
};
struct OptOptions : PassChoice {
  std::string model, to = "tenon", output, style;
  /// printed whatever their size
  bool weights = false;
  bool print = false, verify_each = false, time_passes = false, kernels = false;
  int trials = 4;
};
struct ExplainOptions : PassChoice {
  std::string model, node;
  /// how ranks share the work of training: what becomes of the node there
  std::string parallel;
  /// of it
  std::int64_t batch = 32;
  bool untuned = false;
  std::vector<std::string> preferred;
  std::string target, precision;
};
struct CompileCommandOptions {
  std::string model, output, cpu = "native", tune, target, precision, constants;
  std::int64_t batch = 0;
  /// "true": all of them
  std::vector<std::string> swappable_weights;
  std::vector<std::string> specialised_shapes;
  std::vector<std::string> preferred;
  /// what; empty: nothing
  std::string print;
  bool print_code = false, no_winograd = false, untuned = false;
  /// that kernels are chosen for
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
  /// every node in the table
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
  /// an optimizer: time a step of training with it
  std::string train;
  std::string loss, budget;
  bool swap = false, split = false;
  int warm_up_runs = 1, min_iterations = 3, max_iterations = 100000;
  /// exactly so many, if given
  int iterations = 0;
  /// on a device: in flight at once
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
  /// of a step of training, compiled
  std::string target, precision;
  // A step of training on many ranks.
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
  /// an optimizer: profile a step of training with it
  std::string train, loss;
  /// memory that a run may take
  std::string budget;
  /// to a file, to stay within
  bool swap = false;
  /// the batch, to stay within
  bool split = false;
  /// as of a run, which then goes before the profile
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
  std::string model, loss, optimizer, schedule, output, curve, target;
  /// what the ranks of a launcher share out: data:2,tensor:2
  std::string parallel;
  /// always, if-any; empty: not
  std::string resume;
  /// bytes
  std::string bucket;
  /// nothing, moments, gradients, parameters; empty: what is fastest
  std::string split_states;
  TrainerOptions trainer;
  /// the graph of a step, and train nothing
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

/// Each gives the exit code; what ends the work is thrown as Error.
int demo(OutputFormat format);
int show(const ShowOptions& options, OutputFormat format);
int check(const CheckOptions& options, OutputFormat format);
int convert(const ConvertOptions& options, OutputFormat format);
int run_on_data(const RunOptions& options, OutputFormat format);
int plan_on_cluster(const PlanOptions& options, OutputFormat format);
int run(const RunOptions& options, OutputFormat format);
int opt(const OptOptions& options, OutputFormat format);
int compile(const CompileCommandOptions& options, OutputFormat format);
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

/// What a shell can complete.
struct CompletedCommand {
  std::string name, summary;
  /// "--format"
  std::vector<std::string> options;
};
/// Prints a script for a shell.
int completions(const std::string& shell, const std::vector<CompletedCommand>& commands);

/// Whether a target whose values are looked at is compiled. Throws Error for a device's, which
/// cannot be.
bool is_looked_at_compiled(const std::string& target);
/// `run` where values inside the network are asked about.
int run_looking(const RunOptions& options, OutputFormat format);

/// Whether a `--target` asks for compiled code. Throws Error (Usage) for a word that is no target.
bool is_compiled_target(const std::string& target);
/// What `--target` and `--cpu` together name. Throws Error (Usage) where that is nothing to compile
/// for.
std::string target_text(const std::string& target, const std::string& cpu);

/// Parses the words of the command line and runs what they ask for; gives the exit code.
int run_command_line(int argc, char** argv);

}  // namespace tenon::cli
