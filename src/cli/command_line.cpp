#include "base/error.h"
#include "base/internal_report.h"
#include "base/interrupted.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/convert_changes.h"
#include "cli/examples.h"
#include "cli/out.h"
#include "ops/definition/plugins.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>

namespace tenon::cli {
namespace {

constexpr const char* kNoWinogradHelp = "compute no convolution by Winograd";
constexpr const char* kKernelsHelp = "--to=aitemplate: name the kernels that tuning found fastest";
constexpr const char* kTuneHelp =
    "time the candidates of each kernel first, for SECONDS or until all are timed";
constexpr const char* kUntunedHelp = "choose kernels by the cost model; ignore the tuning cache";
constexpr const char* kPreferHelp =
    "prefer these candidates where they apply: wgmma, mma, library, loops on a GPU; tiles, "
    "winograd, … on a CPU";
constexpr const char* kCheckNanHelp =
    "find the first node that produces a NaN or an infinity; write its operands to DIR";
constexpr const char* kCheckRangeHelp =
    "find the first node that produces a number of larger magnitude";
constexpr const char* kDumpHelp =
    "DIR[:PATTERN]: write every value whose name matches as a .npy file";
constexpr const char* kBudgetHelp =
    "memory limit of a run: 1GiB in total, or 60% of the arena without a budget; values are "
    "recomputed to stay within it";
constexpr const char* kSplitHelp = "with --budget: allow gradient accumulation over micro-batches";
constexpr const char* kSwapHelp =
    "with --budget: allow offload of values to a file (in TMPDIR), on a GPU to host memory";
constexpr const char* kPrecisionHelp =
    "f16 or bf16: mixed precision; tf32: only for contractions, on a GPU; int8: integer "
    "contractions of a quantized model, on a GPU";
constexpr const char* kTargetHelp = "reference (slow interpreter), cpu (compiled) or cuda[:sm_90a]";
constexpr const char* kModelHelp =
    "a model file of any format, - for standard input, zoo:NAME[?param=value,…] or "
    "random:SEED[?nodes=COUNT]";
constexpr const char* kModelOrProgramHelp = "a model, or a program that `compile` wrote (FILE.tnn)";
constexpr const char* kBatchHelp =
    "batch size: the first extent of the inputs (the second if a recurrent layer iterates over the "
    "first), if the graph allows another one";
constexpr const char* kShapesHelp =
    "NAME:1x3x224x224, …: extents of inputs, for symbols or if the graph allows other ones";
constexpr const char* kTrustHelp =
    "run a program with any file name; programs are machine code, like executables";
constexpr const char* kThreadsHelp = "threads (default: as many as the process may use)";

constexpr std::int64_t kMostThreads = 4096, kMostRuns = 1'000'000'000;

// Validates an integer of that range.
CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const std::string expected = concat("a whole number from ", least, " to ", most);
  return CLI::Validator(
      [=](const std::string& text) {
        const std::optional<std::int64_t> number = parse_integer(text);
        return number && *number >= least && *number <= most
                   ? ""
                   : concat("expected ", expected, ", got '", text, "'");
      },
      "");
}

// Validates a finite nonnegative number, excluding 0 unless `or_zero`.
CLI::Validator positive_number(bool or_zero) {
  return CLI::Validator(
      [=](const std::string& text) {
        const std::optional<double> number = parse_real(text);
        const bool is_fit =
            number && std::isfinite(*number) && (*number > 0 || (or_zero && *number == 0));
        return is_fit ? ""
                      : concat("expected a number ", or_zero ? "of 0 or more" : "above 0",
                               ", got '", text, "'");
      },
      "");
}

CLI::Validator thread_count() { return whole_number(1, kMostThreads); }
CLI::Validator tolerance() { return positive_number(true); }

// A subcommand and its action after parsing.
struct Subcommand {
  CLI::App* app = nullptr;
  std::function<int()> action;
};

class CommandLine {
 public:
  CommandLine()
      : app_(
            "Tenon: reads a neural network, makes it fast and small, runs it, shows where time and "
            "memory go") {
    app_.name("tenon");
    app_.require_subcommand(1);
    app_.set_version_flag("--version", concat("tenon ", kVersion));
    app_.footer("tenon help SUBCOMMAND describes one of them.");
    add("demo", "Import, optimize, compile and run the built-in ResNet-50",
        [this] { return demo(format()); });

    auto* show_app =
        add("show", "Summarize a model: inputs, outputs, nodes, parameters, flops, bytes",
            [this] { return show(show_, format()); });
    show_app->add_option("model", show_.model, kModelHelp)->required();
    show_app->add_flag("--nodes", show_.every_node, "list every node");
    show_app->add_flag("--graph", show_.as_graph, "for another system's document: the graph in it");

    auto* check_app = add("check", "Find every problem in a model at once",
                          [this] { return check(check_, format()); });
    check_app->add_option("model", check_.model, kModelHelp)->required();

    auto* convert_app = add("convert", "Translate a model",
                            [this] { return convert(convert_, convert_changes_, format()); });
    convert_app->add_option("model", convert_.model, kModelHelp)->required();
    convert_app->add_option("--to", convert_.to, "the format to write")->required();
    convert_app->add_option("-o,--output", convert_.output, "the file to write")->required();
    convert_app->add_option("--style", convert_.style, "a variant of that format");
    convert_app->add_option("--precision", convert_.precision, "fp16 or bf16: mixed precision");
    convert_app->add_option("--batch", convert_.batch, kBatchHelp)
        ->check(whole_number(1, kMostRuns));
    convert_app->add_option("--shapes", convert_changes_.shapes, kShapesHelp);
    convert_app->add_flag("--kernels", convert_.kernels, kKernelsHelp);
    convert_app->add_option("--target", convert_.target,
                            "with --kernels: cpu (default) or cuda[:sm_90a], which also names "
                            "untuned choices, marked as such");
    convert_app->add_flag("--tune", convert_.tune,
                          "with --kernels --target=cuda: time the kernels on the device first");
    convert_app->add_flag("--train", convert_changes_.trains,
                          "a training step: the model, its loss and the gradients of its "
                          "parameters, in the format's operators");
    convert_app->add_option(
        "--loss", convert_changes_.loss,
        "with --train: as for train; or l2: half the sum of squares of the output");
    convert_app
        ->add_option("--opset", convert_.opset,
                     "ONNX opset (default: the lowest from 13 on with all operators of the graph)")
        ->check(whole_number(1, 1000));

    auto* run_app = add("run", "Run a model once", [this] { return run(run_, format()); });
    run_app->add_option("model", run_.model, kModelOrProgramHelp)->required();
    run_app->add_option(
        "--input", run_.inputs,
        "NAME:@file.npy|@file.pb|@image.jpg|random:SEED|zeros, or @file.npz|@DIR for all inputs");
    run_app
        ->add_option("--mean", run_.mean,
                     "mean of an image's pixels (0 to 255) to subtract: one number or R,G,B")
        ->delimiter(',');
    run_app->add_option("--scale", run_.scale, "factor of the pixels after --mean")->delimiter(',');
    run_app->add_option("--batch", run_.batch, kBatchHelp)->check(whole_number(1, kMostRuns));
    run_app->add_option("--shapes", run_.shapes, kShapesHelp);
    run_app->add_option("--save-inputs", run_.save_inputs,
                        "@DIR: write each input as a .npy file there");
    run_app->add_option(
        "--output", run_.outputs,
        "@DIR: write each output as NAME.npy, a sequence as NAME.items/0.npy, 1.npy, …; @FILE.npz: "
        "all in one file; NAME,… or all: also output these intermediate values");
    run_app->add_option("--expect", run_.expect, "@DIR: compare outputs with the files there");
    run_app->add_option("--atol", run_.absolute, "absolute tolerance of --expect")
        ->check(tolerance());
    run_app->add_option("--rtol", run_.relative, "relative tolerance of --expect")
        ->check(tolerance());
    run_app->add_option("--target", run_.target,
                        concat(kTargetHelp, "; by default cpu, if the model can be compiled"));
    run_app->add_option("--precision", run_.precision, kPrecisionHelp);
    run_app->add_option("--threads", run_.threads, kThreadsHelp)->check(thread_count());
    run_app->add_flag("--untuned", run_.untuned, kUntunedHelp);
    run_app->add_option("--prefer", run_.preferred, kPreferHelp)
        ->type_name("NAME,…")
        ->delimiter(',');
    run_app->add_flag("--trust-program", run_.trust_program, kTrustHelp);
    run_app
        ->add_option("--max-trips", run_.max_trips,
                     "limit of the iterations of all loops (default: none)")
        ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()));

    run_app->add_flag("--check-nan", run_.check_nan, kCheckNanHelp)->type_name("[=DIR]");
    run_app->add_option("--check-range", run_.check_range, kCheckRangeHelp);
    run_app->add_option("--dump-values", run_.dump_values, kDumpHelp);
    run_app->add_option("--data", run_.data,
                        "@DIR of .npz files with many samples each; writes one file for each to "
                        "--output=@DIR; several processes share the files");

    auto* diff_app =
        add("diff", "Compare intermediate values of two models, two targets or two dumps",
            [this] { return diff(diff_, format()); });
    diff_app->add_option("a", diff_.a, "a model, or a folder of .npy files")->required();
    diff_app->add_option("b", diff_.b,
                         "the same (default: the same model; reference against compiled)");
    diff_app->add_option(
        "--targets", diff_.targets,
        "A,B: reference or cpu for each (default: reference,cpu for one model, else reference)");
    diff_app->add_option("--input", diff_.inputs, "as for run");
    diff_app->add_option("--shapes", diff_.shapes, kShapesHelp);
    diff_app->add_option("--atol", diff_.absolute, "absolute tolerance (default: 1e-5)");
    diff_app->add_option("--rtol", diff_.relative, "relative tolerance (default: 1e-3)");
    diff_app->add_option("--threads", diff_.threads, kThreadsHelp)->check(thread_count());
    diff_app->add_option("--top", diff_.top, "rows of the table (default: 30)")
        ->check(whole_number(1, kMostRuns));
    diff_app->add_flag("--all", diff_.all, "list every value, not only the largest differences");

    auto* opt_app = add("opt", "Run passes over a model", [this] { return opt(opt_, format()); });
    opt_app->add_option("model", opt_.model, kModelHelp)->required();
    opt_app->add_option("--passes", opt_.passes, "the passes to run, in this order")
        ->delimiter(',');
    opt_app->add_option("--without", opt_.without, "passes to leave out")->delimiter(',');
    opt_app->add_option("--set", opt_.set, "PASS.OPTION=VALUE, as in fuse.mode=relay")
        ->delimiter(',');
    opt_app->add_option("--stop-after", opt_.stop_after, "the last pass to run");
    opt_app->add_flag("--weights", opt_.weights,
                      "print weights in full, so that the text can be read back");
    opt_app->add_flag("--print", opt_.print, "print the graph after the last pass");
    opt_app->add_flag("--verify-each", opt_.verify_each,
                      "compare results before and after each pass");
    opt_app->add_option("--trials", opt_.trials, "sets of inputs for --verify-each (default: 4)")
        ->check(whole_number(1, kMostRuns));
    opt_app->add_flag("--time-passes", opt_.time_passes,
                      "print time and changes of each pass on stderr");
    opt_app->add_flag("--kernels", opt_.kernels, kKernelsHelp);
    opt_app->add_option("--to", opt_.to, "the format to write");
    opt_app->add_option("--style", opt_.style, "a variant of that format");
    opt_app->add_option("-o,--output", opt_.output,
                        "the file to write; without it the text is printed");

    auto* compile_app = add("compile", "Compile a model into a program file",
                            [this] { return compile(compile_, format()); });
    compile_app->add_option("model", compile_.model, kModelHelp)->required();
    compile_app->add_option(
        "-o,--output", compile_.output,
        "the program to write: FILE.tnn, or FILE.so, a shared object with the C interface");
    compile_app->add_option("--constants", compile_.constants,
                            "with FILE.so: a separate file for the constants");
    compile_app
        ->add_flag("--swappable-weights", compile_.swappable_weights,
                   "weights can be replaced by name after loading: all, or the named ones; slows "
                   "the program down")
        ->type_name("[=NAME,…]")
        ->delimiter(',');
    compile_app->add_option("--batch", compile_.batch, kBatchHelp)
        ->check(whole_number(1, kMostRuns));
    compile_app->add_option("--cpu", compile_.cpu, "native, x86-64-v3 or x86-64-v4");
    compile_app->add_option("--target", compile_.target, "cpu (default) or cuda[:sm_90a]");
    compile_app->add_option("--precision", compile_.precision, kPrecisionHelp);
    compile_app->add_flag("--no-winograd", compile_.no_winograd, kNoWinogradHelp);
    compile_app->add_flag("--tune", compile_.tune, kTuneHelp)->type_name("[=SECONDS]");
    compile_app->add_flag("--untuned", compile_.untuned, kUntunedHelp);
    compile_app->add_option("--prefer", compile_.preferred, kPreferHelp)
        ->type_name("NAME,…")
        ->delimiter(',');
    compile_app
        ->add_option(
            "--threads", compile_.threads,
            "threads that kernels are chosen for (default: as many as the process may use)")
        ->check(thread_count());
    compile_app->add_option(
        "--specialise,--hot", compile_.specialised_shapes,
        "NAME:8x3x224x224,…: shape specialization: kernels for frequent shapes of symbolic inputs");
    compile_app
        ->add_flag("--print", compile_.print,
                   "print the candidates of each kernel; or =nests, =tasks, =plan, =program")
        ->type_name("[=WHAT]");
    compile_app->add_flag("--print-code", compile_.print_code,
                          "print loop nests, code and assembly");
    compile_app
        ->add_option("--without", compile_.without, "passes over graphs or nests to leave out")
        ->delimiter(',');
    compile_app->add_option("--stop-after", compile_.stop_after,
                            "end after this pass and print its result");
    compile_app
        ->add_option("--print-after", compile_.print_after, "print the results of these passes")
        ->delimiter(',');
    compile_app->add_flag("--print-after-all", compile_.print_after_all,
                          "print the results of all passes, tasks, plan and program");
    compile_app->add_option("--dump-dir", compile_.dump_dir,
                            "write each of these to a file in this folder");
    compile_app->add_flag("--time-passes", compile_.time_passes,
                          "print time and changes of each pass on stderr");
    compile_app->add_flag("--verify-each", compile_.verify_each,
                          "compare results before and after each pass");

    auto* passes_app = add("passes", "List the passes of a compilation in order",
                           [this] { return passes(passes_, format()); });
    passes_app->add_option("--cpu", passes_.cpu, "native, x86-64-v3 or x86-64-v4");
    passes_app->add_option("--target", passes_.target, "cpu (default) or cuda[:sm_90a]");
    passes_app->add_option("--precision", passes_.precision, kPrecisionHelp);

    auto* bench_app =
        add("bench", "Time a model on this machine", [this] { return bench(bench_, format()); });
    bench_app->add_option("model", bench_.model, kModelOrProgramHelp)->required();
    bench_app->add_option("--input", bench_.inputs, "as for run");
    bench_app->add_option("--shapes", bench_.shapes, kShapesHelp);
    bench_app->add_option("--batch", bench_.batch, kBatchHelp)->check(whole_number(1, kMostRuns));
    bench_app->add_option("--threads", bench_.threads, kThreadsHelp)->check(thread_count());
    bench_app->add_flag("--trust-program", bench_.trust_program, kTrustHelp);
    bench_app->add_option("--cpu", bench_.cpu, "native, x86-64-v3 or x86-64-v4");
    bench_app->add_option("--target", bench_.target, "cpu (default) or cuda[:sm_90a]");
    bench_app->add_option("--precision", bench_.precision, kPrecisionHelp);
    bench_app->add_flag("--no-winograd", bench_.no_winograd, kNoWinogradHelp);
    bench_app->add_flag("--tune", bench_.tune, kTuneHelp)->type_name("[=SECONDS]");
    bench_app->add_flag("--untuned", bench_.untuned, kUntunedHelp);
    bench_app->add_option("--prefer", bench_.preferred, kPreferHelp)
        ->type_name("NAME,…")
        ->delimiter(',');
    bench_app->add_flag("--train{sgd}", bench_.train, "time a training step with this optimizer")
        ->type_name("[=OPTIMIZER]");
    bench_app->add_option("--loss", bench_.loss, "with --train: as for train");
    bench_app->add_option("--budget", bench_.budget, kBudgetHelp);
    bench_app->add_flag("--swap", bench_.swap, kSwapHelp);
    bench_app->add_flag("--split", bench_.split, kSplitHelp);
    bench_app->add_option("--warm-up", bench_.warm_up_runs, "runs before the clock starts")
        ->check(whole_number(0, kMostRuns));
    bench_app->add_option("--duration", bench_.duration_s, "seconds to measure for")
        ->check(positive_number(true));
    bench_app->add_option("--min-iterations", bench_.min_iterations, "minimum number of runs")
        ->check(whole_number(1, kMostRuns));
    bench_app->add_option("--max-iterations", bench_.max_iterations, "maximum number of runs")
        ->check(whole_number(1, kMostRuns));
    bench_app->add_option("--iterations", bench_.iterations, "number of runs, regardless of time")
        ->check(whole_number(1, kMostRuns));
    bench_app
        ->add_option("--contexts", bench_.contexts,
                     "for a program on a device: number of runs in flight, with copies from and to "
                     "the host (default: 2; 0: not timed)")
        ->check(whole_number(0, 64));
    bench_app->add_option("--percentiles", bench_.percentiles,
                          "percentiles to show (default: 90,99)");
    bench_app->add_option("--save-inputs", bench_.save_inputs, "@DIR: write the inputs as .npy");
    bench_app->add_flag("--steps", bench_.every_step, "print the time of each step");
    bench_app->add_option("--output", bench_.output,
                          "@DIR: write the outputs as .npy; with --train those of one step, and "
                          "every timed step starts from the same state");

    auto* profile_app = add("profile", "Run a model and report time and memory per step", [this] {
      profile_.format = format_;
      return profile(profile_);
    });
    profile_app->add_option("model", profile_.model, kModelOrProgramHelp);
    profile_app->add_option("--report", profile_.report, "FILE.html: a self-contained page");
    profile_app->add_option("--save", profile_.save,
                            "FILE.json: the whole profile, for `tenon report` and --compare");
    profile_app->add_option("--megengine", profile_.megengine,
                            "FILE.json: a profile in MegEngine's format");
    profile_app->add_option("--trace", profile_.trace, "FILE.json: a trace for Chrome or Perfetto");
    profile_app->add_flag("--table", profile_.table, "print tables even if files are written");
    profile_app->add_option("--tensorscope", profile_.tensorscope,
                            "FILE.txt: the nodes in TensorScope's format");
    profile_app->add_option("--aitemplate", profile_.aitemplate,
                            "FILE.txt: the graph in AITemplate's format");
    profile_app->add_option("--dot", profile_.dot, "FILE.dot: for Graphviz, coloured by time");
    profile_app->add_option("--svg", profile_.svg, "FILE.svg: the same as a picture");
    profile_app
        ->add_flag("--train{sgd}", profile_.train, "profile a training step with this optimizer")
        ->type_name("[=OPTIMIZER]");
    profile_app->add_option("--loss", profile_.loss, "with --train: as for train");
    profile_app->add_option("--budget", profile_.budget, kBudgetHelp);
    profile_app->add_flag("--swap", profile_.swap, kSwapHelp);
    profile_app->add_flag("--split", profile_.split, kSplitHelp);
    profile_app->add_option("--compare", profile_.compare,
                            "A.json,B.json: rank what changed between two saved profiles");
    profile_app->add_option("--top", profile_.top, "rows of each table (default: 20)")
        ->check(whole_number(1, kMostRuns));
    profile_app->add_option("--input", profile_.inputs, "as for run");
    profile_app->add_option("--shapes", profile_.shapes, kShapesHelp);
    profile_app->add_option("--batch", profile_.batch, kBatchHelp)
        ->check(whole_number(1, kMostRuns));
    profile_app->add_option("--threads", profile_.threads, kThreadsHelp)->check(thread_count());
    profile_app->add_option("--warm-up", profile_.warm_up_runs, "runs before the clock starts")
        ->check(whole_number(0, kMostRuns));
    profile_app->add_option("--duration", profile_.duration_s, "seconds to measure for")
        ->check(positive_number(true));
    profile_app
        ->add_option("--iterations", profile_.iterations, "number of runs, regardless of time")
        ->check(whole_number(1, kMostRuns));
    profile_app->add_flag("--check-nan", profile_.check_nan, kCheckNanHelp)->type_name("[=DIR]");
    profile_app->add_option("--check-range", profile_.check_range, kCheckRangeHelp);
    profile_app->add_option("--dump-values", profile_.dump_values, kDumpHelp);
    profile_app->add_flag("--overhead", profile_.overhead,
                          "also measure the overhead of profiling");
    profile_app->add_flag("--no-counters", profile_.no_counters, "do not read hardware counters");
    profile_app->add_flag("--trust-program", profile_.trust_program, kTrustHelp);
    profile_app->add_option("--target", profile_.target, "cpu (default) or cuda[:sm_90a]");
    profile_app->add_option("--precision", profile_.precision, kPrecisionHelp);
    profile_app->add_option("--cpu", profile_.cpu, "native, x86-64-v3 or x86-64-v4");
    profile_app->add_flag("--no-winograd", profile_.no_winograd, kNoWinogradHelp);
    profile_app->add_flag("--tune", profile_.tune, kTuneHelp)->type_name("[=SECONDS]");
    profile_app->add_flag("--untuned", profile_.untuned, kUntunedHelp);
    profile_app->add_option("--prefer", profile_.preferred, kPreferHelp)
        ->type_name("NAME,…")
        ->delimiter(',');

    auto* report_app =
        add("report", "Make a page or tables of a saved profile, or compare two", [this] {
          report_.format = format_;
          return report(report_);
        });
    report_app
        ->add_option("profiles", report_.profiles,
                     "files that `profile --save` wrote, or MegEngine's profiles; at most two")
        ->required();
    report_app->add_option("-o,--output", report_.output,
                           "FILE.html: the page; without it tables are printed");
    report_app->add_option("--top", report_.top, "rows of each table (default: 20)")
        ->check(whole_number(1, kMostRuns));

    auto* train_app =
        add("train", "Train a model on this machine", [this] { return train(train_, format()); });
    train::TrainerOptions& trainer = train_.trainer;
    train_app->add_option("model", train_.model, kModelHelp)->required();
    train_app->add_option(
        "--loss", train_.loss,
        "softmax_cross_entropy, sigmoid_cross_entropy, mse, huber or ctc, and settings: "
        "output=, axis=, ignore=, weights=1:2:0.5, reduction=sum, delta=");
    train_app->add_option("--optimizer", train_.optimizer,
                          "sgd, momentum, nesterov, rmsprop, adagrad, adam, adamw or lamb, and "
                          "settings: lr=, momentum=, "
                          "beta1=, beta2=, epsilon=, weight_decay=, clip=, loss_scale=");
    train_app->add_option(
        "--schedule", train_.schedule,
        "constant, step or cosine, and settings: warm_up=, every=, factor=, total=, floor=");
    train_app->add_option("--data", trainer.data,
                          "@file.npz with an array for each input and `target`, or synthetic");
    train_app->add_option("--validation", trainer.validation_data,
                          "validation data, measured after each epoch");
    train_app
        ->add_option("--validation-share", trainer.validation_share,
                     "share of the data that is held out (default: 0.1)")
        ->check(CLI::Range(0.0, 0.9));
    train_app
        ->add_option("--samples", trainer.synthetic_samples,
                     "number of synthetic samples (default: 1024)")
        ->check(whole_number(1, kMostRuns));
    train_app->add_option("--batch", trainer.batch_size, "samples per step (default: 32)")
        ->check(whole_number(1, kMostRuns));
    train_app->add_option("--epochs", trainer.epochs, "number of epochs (default: 1)")
        ->check(whole_number(1, kMostRuns));
    train_app->add_option("--steps", trainer.max_steps, "stop after this number of steps")
        ->check(whole_number(1, kMostRuns));
    train_app->add_option("--parameters", trainer.train.parameters,
                          "patterns of constants to train (default: all)");
    train_app->add_option("--freeze", trainer.train.frozen, "patterns of constants to freeze");
    train_app->add_option("--checkpoint", trainer.checkpoint,
                          "folder for checkpoints of the training state");
    train_app
        ->add_option("--checkpoint-every", trainer.checkpoint_every,
                     "steps between checkpoints (default: one epoch)")
        ->check(whole_number(1, kMostRuns));
    train_app
        ->add_flag("--resume{always}", train_.resume,
                   "continue from the checkpoint; if-any: or start without one")
        ->type_name("[=if-any]");
    train_app->add_option("--seed", trainer.seed,
                          "seed of sample order, dropout and synthetic data (default: 1)");
    train_app->add_option("--threads", trainer.thread_count, "threads (default: all)")
        ->check(thread_count());
    train_app->add_option("--target", train_.target, "cpu (default) or cuda[:sm_90a]");
    train_app->add_option("--precision", train_.precision, kPrecisionHelp);
    train_app->add_option("--budget", trainer.budget.budget, kBudgetHelp);
    train_app->add_flag("--swap", trainer.budget.may_swap, kSwapHelp);
    train_app->add_flag("--split", trainer.budget.may_split, kSplitHelp);
    train_app->add_option("-o,--output", train_.output,
                          "the trained model: FILE.onnx, FILE.tnn or FILE.tenon");
    train_app->add_option(
        "--curve", train_.curve,
        "the learning curve: FILE.svg (default: curve.svg in the folder of checkpoints)");
    train_app->add_option("--parallel", train_.parallel,
                          "data: data parallel over the ranks that mpirun started; tensor:N: "
                          "tensor parallel in groups of N ranks; data:M,tensor:N: both");
    train_app
        ->add_option("--micro-batches", trainer.micro_batches,
                     "number of micro-batches of a batch (gradient accumulation; default: one for "
                     "each rank)")
        ->check(whole_number(1, kMostRuns));
    train_app->add_flag("--split-states{moments}", train_.split_states,
                        "ZeRO sharding: moments (stage 1; default if the optimizer allows it), "
                        "gradients (stage 2), parameters (stage 3), or nothing");
    train_app->add_option("--bucket", train_.bucket,
                          "bytes of gradients per all-reduce (default: 4MiB)");
    train_app->add_flag("--print", train_.print, "print the graph of a step without training");

    auto* quantize_app =
        add("quantize", "Quantize a model to 8 or 4 bits, and report the loss of accuracy",
            [this] { return quantize(quantize_, format()); });
    quantize_app->add_option("model", quantize_.model, kModelHelp)->required();
    quantize_app->add_option("--calibrate", quantize_.calibrate,
                             "calibration samples: @DIR with a folder or .npz file for each, or "
                             "random:N (default: random:8)");
    quantize_app->add_option(
        "--scheme", quantize_.scheme,
        "int8, int8-7bit (7-bit weights), int8-symmetric, or weight-only: w8[:GROUP], w4[:GROUP]");
    quantize_app->add_option("--ranges", quantize_.ranges,
                             "calibration method: min-max, percentile, kl or mse (default)");
    quantize_app->add_option("--skip", quantize_.skip, "contractions to leave unquantized")
        ->delimiter(',');
    quantize_app
        ->add_option("--target-error", quantize_.target_error,
                     "leave the fewest contractions in float that bring the relative error of "
                     "outputs below this")
        ->check(positive_number(false));
    quantize_app
        ->add_option("--pipeline", quantize_.pipeline,
                     "tenon (default), or relay: partition, annotate, calibrate, realize")
        ->check(CLI::IsMember({"tenon", "relay"}));
    quantize_app->add_option(
        "--set", quantize_.set,
        "with --pipeline=relay: FIELD=VALUE of its configuration, as global_scale=4");
    quantize_app->add_option(
        "--stop-after", quantize_.stop_after,
        "with --pipeline=relay: prepare, partition, annotate, calibrate or realize");
    quantize_app->add_flag("--print", quantize_.print,
                           "with --pipeline=relay: print the program as Relay");
    quantize_app->add_option("--report", quantize_.report,
                             "FILE.html: a page with every error, histogram and range");
    quantize_app->add_flag("--all", quantize_.all,
                           "list every contraction, not only the ten worst");
    quantize_app->add_option("--threads", quantize_.threads, kThreadsHelp)->check(thread_count());
    quantize_app->add_option("-o,--output", quantize_.output,
                             "the quantized model: FILE.onnx, FILE.tnn, FILE.tenon or FILE.relay");

    auto* tune_app =
        add("tune", "Time the candidates of a model's kernels, or manage the tuning cache",
            [this] { return tune(tune_, format()); });
    tune_app->add_option("model", tune_.model, kModelHelp);
    tune_app->add_option("--seconds", tune_.seconds, "time limit: no kernel is started after it")
        ->check(positive_number(false));
    tune_app->add_option("--threads", tune_.threads, kThreadsHelp)->check(thread_count());
    tune_app->add_option("--cpu", tune_.cpu, "native, x86-64-v3 or x86-64-v4");
    tune_app->add_option("--target", tune_.target, "cpu (default) or cuda[:sm_90a]");
    tune_app->add_option("--precision", tune_.precision, kPrecisionHelp);
    tune_app->add_flag("--no-winograd", tune_.no_winograd, kNoWinogradHelp);
    tune_app->add_flag("--as-is", tune_.as_is, "skip graph passes, as `convert` does");
    tune_app->add_flag("--show", tune_.show, "print the tuning cache");
    tune_app->add_flag("--all", tune_.all, "with --show: every candidate, not only the fastest");
    tune_app->add_flag("--clear", tune_.clear, "clear the tuning cache");
    tune_app->add_option("--export", tune_.export_to, "write the tuning cache as JSON");
    tune_app->add_option("--import", tune_.import_from, "read a file written by --export");

    auto* explain_app =
        add("explain", "Explain the decisions of passes and kernel selection about a node",
            [this] { return explain(explain_, format()); });
    explain_app->add_option("model", explain_.model, kModelHelp)->required();
    explain_app->add_option("node", explain_.node, "name of a node or of its result")->required();
    explain_app->add_option("--target", explain_.target, "cpu (default) or cuda[:sm_90a]");
    explain_app->add_option("--precision", explain_.precision, kPrecisionHelp);
    explain_app->add_flag("--untuned", explain_.untuned, kUntunedHelp);
    explain_app->add_option("--prefer", explain_.preferred, kPreferHelp)
        ->type_name("NAME,…")
        ->delimiter(',');
    auto* parallel = explain_app->add_option(
        "--parallel", explain_.parallel,
        "tensor:N: sharding of the node over N tensor-parallel ranks, with reasons");
    explain_app->add_option("--batch", explain_.batch, "samples in a batch, with --parallel")
        ->check(CLI::PositiveNumber)
        ->needs(parallel);
    explain_app->add_option("--passes", explain_.passes, "the passes to run, in this order")
        ->delimiter(',');
    explain_app->add_option("--without", explain_.without, "passes to leave out")->delimiter(',');
    explain_app->add_option("--stop-after", explain_.stop_after, "the last pass to run");
    explain_app->add_option("--set", explain_.set, "PASS.OPTION=VALUE, as in fuse.mode=relay")
        ->delimiter(',');

    auto* plan_app =
        add("plan", "Plan memory: peak of a model, and its fastest plan within a budget",
            [this] { return plan(plan_, format()); });
    plan_app->add_option("model", plan_.model, kModelHelp)->required();
    plan_app->add_option("--budget", plan_.budget,
                         "bytes of the arena: 4GiB, 500MB, or 60% of the size without a budget");
    plan_app
        ->add_flag("--train{adamw}", plan_.train,
                   "a training step with this optimizer: kernels as selected for this machine, or "
                   "with --cluster for many ranks")
        ->type_name("[=OPTIMIZER]");
    plan_app->add_option("--loss", plan_.loss, "with --train: as for train");
    plan_app->add_option(
        "--cluster", plan_.cluster,
        "JSON description of machines and links, or here[:THREADS]: estimate a step on many ranks");
    plan_app->add_option("--ranks", plan_.ranks,
                         "numbers of ranks (default: 1,2,4,… as many as the cluster has)");
    plan_app
        ->add_option("--batch", plan_.batch,
                     "batch size, as for run; with --cluster: samples per rank (default: the "
                     "model's, or 32)")
        ->check(whole_number(1, kMostRuns));
    plan_app->add_flag("--recompute", plan_.recompute, "allow rematerialization (the default)");
    plan_app->add_flag("--swap", plan_.swap, "allow offload to the host; the device needs a link");
    plan_app->add_flag("--split", plan_.split, "allow gradient accumulation over micro-batches");
    plan_app->add_option("--device", plan_.device,
                         "JSON description: rates of arithmetic, memory, link");
    plan_app->add_option("--reading", plan_.reading,
                         "for a Chainer document: retained (values that it retains), tags, or "
                         "fused (fused functions)");
    plan_app->add_option(
        "--method", plan_.method,
        "search (default), or a published one: approximate, exact (lower sets), chen");
    plan_app->add_flag("--compare", plan_.compare,
                       "compare all methods; --budget takes several, with commas");
    plan_app->add_flag("--frontier", plan_.frontier, "the frontier of budget and time");
    plan_app->add_option("--html", plan_.html, "write the memory map as a page");
    plan_app->add_option("-o,--output", plan_.output, "write the plan as text");
    plan_app->add_option("--target", plan_.target,
                         "with --train: cpu (default) or cuda[:sm_90a], which need not be present");
    plan_app->add_option("--precision", plan_.precision, "with --train: as for compile");
    plan_app->add_flag("--no-in-place", plan_.no_in_place, "forbid in-place results");
    plan_app->add_option("--alignment", plan_.alignment, "alignment of every buffer (default: 64)");
    plan_app->add_option("--steps", plan_.step_limit,
                         "search steps per restart (default: by problem size)");

    auto* arena_app =
        add("arena", "Place buffers with lifetimes in an arena: a table id,lower,upper,size",
            [this] { return arena(arena_, format()); });
    arena_app->add_option("file", arena_.file, "a CSV file of the public benchmarks")->required();
    arena_app->add_option("--capacity", arena_.capacity,
                          "bytes that suffice; exit code 5 if more are needed");
    arena_app->add_option("--alignment", arena_.alignment,
                          "alignment of every buffer (default: 1)");
    arena_app->add_option("--nodes", arena_.node_limit, "limit of search nodes");
    arena_app->add_option("-o,--output", arena_.output, "write the table with offsets");

    auto* ops_app = add("ops", "List the operators", [this] { return ops(ops_, format()); });
    ops_app->add_option("name", ops_.name, "details of one operator");

    auto* completions_app = add("completions", "Print a script for completion in a shell",
                                [this] { return completions(shell_, completed()); });
    completions_app->add_option("shell", shell_, "bash, zsh or fish")->required();

    add("doctor", "Check this machine: processor, GPU, libraries",
        [this] { return doctor(format()); });

    auto* conformance_app =
        add("conformance", "Run test cases in the layout of the ONNX backend tests",
            [this] { return conformance(conformance_, format()); });
    conformance_app->add_option("folders", conformance_.folders, "folders of cases")->required();
    conformance_app->add_option("--filter", conformance_.filter,
                                "only cases whose name contains this text");
    conformance_app->add_option("--every", conformance_.every, "only every Nth case")
        ->check(CLI::PositiveNumber);
    conformance_app->add_option("--expected-failures", conformance_.expected_failures,
                                "a file of lines 'case reason'");
    conformance_app->add_option("--target", conformance_.target, kTargetHelp);
    conformance_app->add_flag("--symbolic", conformance_.symbolic,
                              "make every axis of every input symbolic");
    conformance_app->add_flag(
        "--vary", conformance_.vary,
        "with --symbolic: also vary one extent at a time, and compare with fixed shapes");
    conformance_app->add_option(
        "--keep", conformance_.keep,
        "DIR: with --vary, inputs and outputs of each run, in CASE/test_data_set_3");
    conformance_app->add_option("--atol", conformance_.absolute, "absolute tolerance")
        ->check(tolerance());
    conformance_app->add_option("--rtol", conformance_.relative, "relative tolerance")
        ->check(tolerance());
    hide_empty_defaults();
  }

  int parse_and_run(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "help") return help(argc > 2 ? argv[2] : "");
    if (argc < 2)
      throw Error("no subcommand given", ErrorKind::Usage)
          .expected("tenon SUBCOMMAND …")
          .hint("`tenon help` lists them");
    if (argv[1][0] != '-') find_subcommand(argv[1]);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& answer) {  // --help, --version
      return app_.exit(answer, out(), err());
    } catch (const CLI::ExtrasError&) {
      refuse_unknown_flag(argc, argv);
    } catch (const CLI::ParseError& error) {
      throw Error(error.what(), ErrorKind::Usage).hint("tenon SUBCOMMAND --help lists the options");
    }
    for (const Subcommand& subcommand : subcommands_) {
      if (!subcommand.app->parsed()) continue;
      for (const std::string& plugin : plugins_) load_plugin(plugin);
      return subcommand.action();
    }
    return 0;
  }

 private:
  OutputFormat format() const {
    if (format_ == "table") return OutputFormat::Table;
    if (format_ == "json") return OutputFormat::Json;
    throw Error(concat("no output format is called '", format_, "'"), ErrorKind::Usage)
        .hint(suggest_name(format_, std::vector<std::string>{"table", "json"}));
  }

  CLI::App* add(const char* name, const char* summary, std::function<int()> action) {
    CLI::App* app = app_.add_subcommand(name, summary);
    app->option_defaults()->always_capture_default();
    if (const std::string_view example = example_of(name); !example.empty())
      app->footer(concat("Example: ", example));
    app->add_option("--format", format_, "table or json");
    app->add_option("--plugin", plugins_,
                    "FILE.so: operators of your own (include/tenon/plugin.h)");
    app->add_flag_callback(
        "--json", [this] { format_ = "json"; }, "the same as --format=json");
    subcommands_.push_back({app, std::move(action)});
    return app;
  }

  CLI::App& find_subcommand(const std::string& name) const {
    std::vector<std::string> known = {"help"};
    for (const Subcommand& subcommand : subcommands_) {
      if (subcommand.app->get_name() == name) return *subcommand.app;
      known.push_back(subcommand.app->get_name());
    }
    throw Error(concat("no subcommand is called '", name, "'"), ErrorKind::Usage)
        .hint(suggest_name(name, known));
  }

  // Hides empty defaults in the help, and 0 if it stands for an unset option.
  void hide_empty_defaults() {
    for (const Subcommand& subcommand : subcommands_) {
      for (CLI::Option* option : subcommand.app->get_options()) {
        if (option->get_default_str() == "[]" || option->get_default_str() == "0")
          option->default_str("");
      }
    }
  }

  std::vector<CompletedCommand> completed() const {
    std::vector<CompletedCommand> list;
    for (const Subcommand& subcommand : subcommands_) {
      CompletedCommand& made = list.emplace_back(
          CompletedCommand{subcommand.app->get_name(), subcommand.app->get_description(), {}});
      for (const CLI::Option* option : subcommand.app->get_options()) {
        for (const std::string& long_name : option->get_lnames())
          made.options.push_back("--" + long_name);
      }
    }
    return list;
  }

  int help(const std::string& name) const {
    out() << (name.empty() || name == "help" ? app_.help() : find_subcommand(name).help("tenon"));
    return 0;
  }

  [[noreturn]] void refuse_unknown_flag(int argc, char** argv) const {
    for (const Subcommand& subcommand : subcommands_) {
      if (!subcommand.app->parsed() && subcommand.app->get_name() != argv[1]) continue;
      std::vector<std::string> known;
      for (const CLI::Option* option : subcommand.app->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
      for (int k = 2; k < argc; ++k) {
        const std::string word = split(argv[k], '=').front();
        if (word.rfind("--", 0) != 0) continue;
        if (std::find(known.begin(), known.end(), word) != known.end()) continue;
        throw Error(concat("'tenon ", argv[1], "' has no option '", word, "'"), ErrorKind::Usage)
            .hint(suggest_name(word, known));
      }
    }
    throw Error("unexpected arguments", ErrorKind::Usage)
        .hint("tenon SUBCOMMAND --help lists the options");
  }

  CLI::App app_;
  std::vector<Subcommand> subcommands_;
  std::string format_ = "table", shell_;
  std::vector<std::string> plugins_;
  ShowOptions show_;
  CheckOptions check_;
  ConvertOptions convert_;
  RunOptions run_;
  DiffOptions diff_;
  OptOptions opt_;
  CompileCommandOptions compile_;
  PassesCommandOptions passes_;
  BenchOptions bench_;
  TrainCommandOptions train_;
  ConvertChanges convert_changes_;
  QuantizeCommandOptions quantize_;
  TuneCommandOptions tune_;
  ExplainOptions explain_;
  PlanOptions plan_;
  ArenaOptions arena_;
  ProfileOptions profile_;
  ReportOptions report_;
  OpsOptions ops_;
  ConformanceCommandOptions conformance_;
};

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    const int code = CommandLine().parse_and_run(argc, argv);
    finish_output();
    return code;
  } catch (const Interrupted& error) {
    err() << "error: " << error.what() << "\n";
    return Interrupted::kExitCode;
  } catch (const Error& error) {
    err() << "error: " << error.what() << "\n";
    for (const Error& further : error.further()) err() << "error: " << further.what() << "\n";
    return static_cast<int>(error.kind());
  } catch (const std::filesystem::filesystem_error& error) {
    err() << "error: " << error.code().message() << "\n  at        " << error.path1().string()
          << "\n";
    return static_cast<int>(ErrorKind::Usage);
  } catch (const std::bad_alloc&) {
    err() << "error: out of memory\n  hint      `ulimit -v` shows the limit of this process\n";
    return static_cast<int>(ErrorKind::OutOfMemory);
  } catch (const InternalError& error) {
    err() << report(error) << "\n";
    return static_cast<int>(ErrorKind::Internal);
  } catch (const std::exception& error) {
    err() << error.what() << "\n";
    return static_cast<int>(ErrorKind::Internal);
  }
}

}  // namespace tenon::cli
