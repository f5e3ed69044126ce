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
  std::int64_t batch = 0;  ///< 0: as it is
  int opset = 0;
  bool kernels = false;      ///< those that the tuning cache knows
  std::string target, tune;  ///< whose kernels; "true": those of a device are timed first
};
struct RunOptions {
  std::string model;
  std::vector<std::string> inputs, shapes;
  std::vector<std::string> outputs;  ///< @DIR, @FILE.npz, and names of values to give out
  std::string expect, save_inputs;
  std::vector<double> mean = {0}, scale = {1};  ///< of the pixels of images
  std::int64_t batch = 0;
  double absolute = 1e-7, relative = 1e-3;
  int threads = 0;
  std::string target;          ///< empty: compiled if possible
  bool trust_program = false;  ///< whatever its file is called
  bool untuned = false;
  std::vector<std::string> preferred;  ///< candidates that are taken wherever they accept
  std::int64_t max_trips = 0;          ///< of all loops together; 0: any number
  std::string precision;
  std::string check_nan;    ///< "true" or a folder for what the node read
  double check_range = 0;   ///< 0: any magnitude
  std::string dump_values;  ///< DIR[:PATTERN]
  std::string data;         ///< @DIR of .npz files, each of many samples; empty: one run
};
struct DiffOptions {
  std::string a, b;
  std::vector<std::string> inputs, shapes;
  std::string targets;  ///< "reference,cpu"
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
  bool weights = false;  ///< printed whatever their size
  bool print = false, verify_each = false, time_passes = false, kernels = false;
  int trials = 4;
};
struct ExplainOptions : PassChoice {
  std::string model, node;
  std::string parallel;  ///< how ranks share the work of training: what becomes of the node there
  std::int64_t batch = 32;  ///< of it
  bool untuned = false;
  std::vector<std::string> preferred;
  std::string target, precision;
};
struct CompileCommandOptions {
  std::string model, output, cpu = "native", tune, target, precision, constants;
  std::int64_t batch = 0;
  std::vector<std::string> swappable_weights;  ///< "true": all of them
  std::vector<std::string> specialised_shapes;
  std::vector<std::string> preferred;
  std::string print;  ///< what; empty: nothing
  bool print_code = false, no_winograd = false, untuned = false;
  int threads = 0;  ///< that kernels are chosen for
};
struct QuantizeCommandOptions {
  std::string model, calibrate, scheme = "int8", ranges = "mse", output, report;
  std::vector<std::string> skip;
  std::string pipeline = "tenon", stop_after;  ///< or relay, with its stages and fields
  std::vector<std::string> set;
  bool print = false;
  double target_error = 0;  ///< 0: any
  bool all = false;         ///< every node in the table
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
  std::string train;  ///< an optimizer: time a step of training with it
  std::string loss, budget;
  bool swap = false, split = false;
  int warm_up_runs = 1, min_iterations = 3, max_iterations = 100000;
  int iterations = 0;  ///< exactly so many, if given
  int contexts = 2;    ///< on a device: in flight at once
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
  std::string target, precision;  ///< of a step of training, compiled
  // A step of training on many ranks.
  std::string train, loss, cluster, ranks;  ///< optimizer; loss; a description in JSON; "8,64,1024"
  std::int64_t batch = 0;                   ///< samples of each rank
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
  std::string train, loss;             ///< an optimizer: profile a step of training with it
  std::string budget;                  ///< memory that a run may take
  bool swap = false;                   ///< to a file, to stay within
  bool split = false;                  ///< the batch, to stay within
  std::string check_nan, dump_values;  ///< as of a run, which then goes before the profile
  double check_range = 0;
  std::string format = "table";  ///< table, json, csv or md
};
struct ReportOptions {
  std::vector<std::string> profiles;
  std::string output, format = "table";
  int top = 20;
};
struct TrainCommandOptions {
  std::string model, loss, optimizer, schedule, output, curve, target;
  std::string parallel;      ///< what the ranks of a launcher share out: data:2,tensor:2
  std::string resume;        ///< always, if-any; empty: not
  std::string bucket;        ///< bytes
  std::string split_states;  ///< nothing, moments, gradients, parameters; empty: what is fastest
  TrainerOptions trainer;
  bool print = false;  ///< the graph of a step, and train nothing
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
  std::vector<std::string> options;  ///< "--format"
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
