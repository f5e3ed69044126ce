#include "app/targets.h"
#include "base/error.h"
#include "base/lockstep.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/status_line.h"
#include "distributed/mesh.h"
#include "distributed/mpi.h"
#include "driver/compile.h"
#include "host/resident.h"
#include "memory/size_text.h"
#include "models/model.h"
#include "passes/shard/shard.h"
#include "program/file.h"
#include "train/curve.h"
#include "train/options.h"
#include "train/trainer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

namespace tenon::cli {
namespace {

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

std::string fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

std::string description(double loss, double accuracy, bool has_accuracy) {
  return concat("loss ", fixed(loss, 4),
                has_accuracy ? concat(", accuracy ", fixed(100 * accuracy, 1), " %") : "");
}

// The current step on a terminal; otherwise every tenth of the steps.
class ProgressLine {
 public:
  void show(const train::TrainProgress& at, bool has_accuracy) {
    const bool is_last = at.step == at.step_count;
    if (!line_.is_terminal() && !is_last && at.step != 1 &&
        at.step * 10 / at.step_count == last_tenth_)
      return;
    last_tenth_ = at.step * 10 / at.step_count;
    constexpr int kCells = 24;
    const auto done = static_cast<int>(kCells * at.step / at.step_count);
    std::string bar(static_cast<std::size_t>(done), '=');
    bar.resize(kCells, ' ');
    line_.show(concat("epoch ", at.epoch, " [", bar, "] step ", at.step, "/", at.step_count, "  ",
                      description(at.loss, at.accuracy, has_accuracy), "  ",
                      fixed(at.samples_per_s, 1), " samples/s  ", duration(at.seconds_left),
                      " left"));
  }
  void end() { line_.end(); }

 private:
  StatusLine line_;
  std::int64_t last_tenth_ = -1;
};

void write_text(const std::string& text, const std::string& path) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

void write_model(const Graph& model, const std::string& path) {
  if (path.ends_with(".tnn")) {
    write_program(driver::compile_graph(model), path);
  } else if (path.ends_with(".onnx")) {
    models::save_model(model, "onnx", path);
  } else if (path.ends_with(".tenon")) {
    models::save_model(model, "tenon", path);
  } else {
    throw Error("cannot tell the format of the trained model", ErrorKind::Usage)
        .expected("a file that ends in .onnx, .tnn or .tenon")
        .got(path);
  }
}

std::string curve_path(const TrainCommandOptions& options) {
  if (!options.curve.empty() || options.trainer.checkpoint.empty()) return options.curve;
  return (std::filesystem::path(options.trainer.checkpoint) / "curve.svg").string();
}

void print_result(const train::TrainResult& result, const TrainCommandOptions& options,
                  OutputFormat format) {
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json{{"model", options.model},
                                {"steps", result.steps},
                                {"was_stopped", result.was_stopped},
                                {"samples_per_s", result.samples_per_s}};
    if (!result.curve.empty()) {
      for (const train::CurvePoint& point : result.curve) {
        json[point.is_validation ? "validation" : "training"].push_back(
            {{"step", point.step}, {"loss", point.loss}, {"accuracy", point.accuracy}});
      }
    }
    out() << json.dump(2) << "\n";
    return;
  }
  out() << (result.was_stopped ? "stopped after " : "trained for ") << result.steps << " steps at "
        << fixed(result.samples_per_s, 1) << " samples/s";
  if (result.validation) {
    out() << "; held out: "
          << description(result.validation->loss, result.validation->accuracy, result.has_accuracy);
  }
  out() << "\n";
}

}  // namespace

namespace {

// The ranks of a launcher, by MPI; or this process as the only rank, which needs no MPI on a GPU of
// its own.
class Ranks {
 public:
  explicit Ranks(bool needs_mpi) {
    if (needs_mpi) {
      mpi_ = std::make_unique<distributed::MpiRanks>();
    } else {
      alone_ = one_rank();
    }
  }
  Communicator& all() { return mpi_ ? static_cast<Communicator&>(*mpi_) : *alone_; }
  int rank() { return all().rank(); }
  int size() { return all().size(); }
  void set_step(std::int64_t step) {
    if (mpi_) mpi_->set_step(step);
  }
  [[noreturn]] void abort(int exit_code) {
    if (mpi_) mpi_->abort(exit_code);
    std::_Exit(exit_code);
  }

 private:
  std::unique_ptr<distributed::MpiRanks> mpi_;
  std::unique_ptr<Communicator> alone_;
};

// Trains and writes the results, on rank 0 only.
int run_trainer(train::Trainer& trainer, const TrainCommandOptions& options, OutputFormat format,
                Ranks* ranks) {
  const bool is_speaker = ranks == nullptr || ranks->rank() == 0;
  const bool has_accuracy = static_cast<bool>(trainer.session().graph().find(passes::kAccuracy));
  if (is_speaker) {
    if (!trainer.note().empty()) err() << trainer.note() << "\n";
    err() << trainer.sample_count() << " samples, " << trainer.step_count() << " steps of "
          << options.trainer.batch_size;
    if (ranks != nullptr)
      err() << " in " << trainer.micro_batch_count() << " parts on " << ranks->size() << " ranks"
            << (options.trainer.tensor_ranks > 1
                    ? concat(", ", options.trainer.tensor_ranks, " of which share out tensors")
                    : "");
    err() << "; a step is " << trainer.session().program().steps.size() << " kernels, "
          << format_bytes(trainer.session().arena_bytes()) << " arena, "
          << format_bytes(trainer.session().state_bytes() + trainer.session().second_place_bytes())
          << " states\n";
    const distributed::DistributedStep* ranked = trainer.session().ranked();
    if (ranked != nullptr && !options.trainer.budget.budget.empty()) {
      const distributed::RankNeeds needs = trainer.session().needs();
      err() << "budget: a rank holds " << format_bytes(needs.total()) << ": "
            << format_bytes(needs.states) << " states, " << format_bytes(needs.exchanged)
            << " exchanged between ranks, " << format_bytes(needs.arena) << " arena\n";
    }
    if (ranked != nullptr && !ranked->place().words.empty())
      err() << "ranks exchange by " << ranked->place().words << ", sums in rank order\n";
  }
  const planning::BudgetPlanner* planner = trainer.session().budget();
  if (planner != nullptr) {
    if (is_speaker) err() << "budget: " << to_string(planner->report()) << "\n";
    begin_resident_peak();
  }
  ProgressLine line;
  const Interrupt interrupt;
  trainer.should_stop = [] {
    return Interrupt::is_asked() || distributed::MpiRanks::is_stop_requested();
  };
  trainer.on_progress = [&](const train::TrainProgress& at) {
    if (ranks != nullptr) ranks->set_step(at.step);
    if (is_speaker) line.show(at, has_accuracy);
  };
  trainer.on_validation = [&](const train::CurvePoint& point) {
    if (!is_speaker) return;
    line.end();
    err() << "step " << point.step << ": held out "
          << description(point.loss, point.accuracy, has_accuracy) << "\n";
  };
  const train::TrainResult result = trainer.run();
  if (!is_speaker) return 0;
  line.end();
  if (planner != nullptr) {
    err() << "budget: " << to_string(planner->report()) << "; resident while it trained "
          << format_bytes(resident_peak_bytes()) << "\n";
  }
  if (const std::string path = curve_path(options); !path.empty()) {
    write_text(train::curve_svg(result.curve, options.model, has_accuracy), path);
  }
  if (!options.output.empty()) write_model(result.model, options.output);
  const bool is_device = ranks != nullptr && trainer.session().ranked()->place().is_device;
  if (ranks != nullptr && (ranks->size() > 1 || is_device)) {
    const distributed::CommunicationTimes& times = result.communication;
    err() << "communication: " << format_bytes(times.bytes) << " sent by each rank in "
          << trainer.session().ranked()->bucket_count() << " buckets a step, "
          << fixed(times.busy_s, 2) << " s, " << fixed(100 * times.hidden_share(), 0)
          << " % of it overlaps the backward pass\n";
  }
  print_result(result, options, format);
  return 0;
}

// Returns the trainer of this rank. If construction fails on some rank, returns null on all, and
// one rank reports the error.
std::unique_ptr<train::Trainer> agreed_trainer(const TrainCommandOptions& options, Ranks& ranks,
                                               int& exit_code) {
  std::unique_ptr<train::Trainer> trainer;
  std::string failure;
  try {
    trainer = std::make_unique<train::Trainer>(models::load_model(options.model), options.trainer);
  } catch (const Error& error) {
    failure = concat(static_cast<int>(error.kind()), " ", error.what());
  }
  const std::vector<std::string> failures = ranks.all().all_gather(failure);
  const auto first =
      std::ranges::find_if(failures, [](const std::string& f) { return !f.empty(); });
  if (first == failures.end()) return trainer;
  exit_code = std::atoi(first->c_str());
  if (ranks.rank() == 0) {
    const bool is_everywhere =
        std::ranges::all_of(failures, [&](const std::string& f) { return f == *first; });
    err() << "error: ";
    if (!is_everywhere) err() << "rank " << first - failures.begin() << ": ";
    err() << first->substr(first->find(' ') + 1) << "\n";
  }
  return nullptr;
}

int train_on_ranks(TrainCommandOptions options, OutputFormat format) {
  const bool is_gpu = options.trainer.target.is_gpu();
  Ranks ranks(!is_gpu || distributed::is_launched());
  options.trainer.ranks = &ranks.all();
  try {
    options.trainer.tensor_ranks = distributed::parse_mesh(options.parallel, ranks.size()).tensor;
  } catch (const Error& error) {  // the same on every rank
    if (ranks.rank() == 0) err() << "error: " << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
  int exit_code = 0;
  const std::unique_ptr<train::Trainer> trainer = agreed_trainer(options, ranks, exit_code);
  if (!trainer) return exit_code;
  try {
    trainer->check_ranks();
  } catch (const Error& error) {  // the same on every rank
    if (ranks.rank() == 0) err() << "error: " << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
  try {
    return run_trainer(*trainer, options, format, &ranks);
  } catch (const Error& error) {
    // A failure on every rank is reported by rank 0, which ends the others before they print it
    // too.
    if (ranks.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    err() << "error: rank " << ranks.rank() << ": " << error.what() << "\n" << std::flush;
    ranks.abort(static_cast<int>(error.kind()));
  }
}

train::RankSplit split_named(const std::string& text) {
  static const std::map<std::string, train::RankSplit> known = {
      {"", train::RankSplit::Fastest},
      {"nothing", train::RankSplit::Nothing},
      {"moments", train::RankSplit::Moments},
      {"gradients", train::RankSplit::Gradients},
      {"parameters", train::RankSplit::Parameters}};
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  throw Error("--split-states says what not", ErrorKind::Usage)
      .expected("moments, gradients, parameters or nothing")
      .got(text);
}

void require_parallel(const TrainCommandOptions& options) {
  if (options.parallel.empty()) {
    if (distributed::launched_rank_count() == 1) return;
    throw Error("several ranks would train the same, each by itself", ErrorKind::Usage)
        .got(distributed::launched_rank_count(), " processes, started together")
        .hint("give --parallel=data");
  }
  distributed::parse_mesh(options.parallel);  // reports errors before MPI is loaded
}

int train(const TrainCommandOptions& given, OutputFormat format) {
  TrainCommandOptions options = given;
  train::TrainerOptions& trainer = options.trainer;
  trainer.target = app::target_of(options.target, "native", options.precision);
  if (!options.loss.empty()) train::set_loss(trainer.train.loss, options.loss);
  if (!options.optimizer.empty()) train::set_optimizer(trainer.train, options.optimizer);
  if (!options.schedule.empty()) train::set_schedule(trainer.train.schedule, options.schedule);
  if (!options.bucket.empty()) {
    const std::optional<std::uint64_t> bytes = memory::parse_bytes(options.bucket);
    if (!bytes || *bytes == 0)
      throw Error("--bucket is no number of bytes", ErrorKind::Usage).got(options.bucket);
    trainer.bucket_bytes = *bytes;
  }
  trainer.split = split_named(options.split_states);
  trainer.resume = !options.resume.empty();
  trainer.resume_if_any = options.resume == "if-any";
  if (trainer.resume && !trainer.resume_if_any && options.resume != "always")
    throw Error("--resume says when not", ErrorKind::Usage)
        .expected("--resume or --resume=if-any")
        .got(options.resume);
  require_parallel(options);
  planning::require_budget(trainer.budget, true);
  if (options.print) {
    trainer.train.micro_batches = std::max<std::int64_t>(1, trainer.micro_batches);
    Graph model = models::load_model(options.model);
    const distributed::Mesh mesh =
        options.parallel.empty() ? distributed::Mesh{} : distributed::parse_mesh(options.parallel);
    if (mesh.tensor == 1) {
      out() << print(tenon::passes::train(std::move(model), trainer.train));
      return 0;
    }
    // The step of each rank: extents must be static.
    trainer.train.micro_batches = std::max(trainer.train.micro_batches, mesh.data);
    model = train::with_batch(std::move(model), trainer.batch_size / trainer.train.micro_batches);
    out() << print(
        shard(tenon::passes::train(std::move(model), trainer.train), {mesh.tensor, mesh.data, {}}));
    return 0;
  }
  if (!options.output.empty() && !options.output.ends_with(".onnx") &&
      !options.output.ends_with(".tnn") && !options.output.ends_with(".tenon")) {
    write_model({}, options.output);  // reports errors before hours of training
  }
  if (!options.parallel.empty()) return train_on_ranks(std::move(options), format);
  train::Trainer alone(models::load_model(options.model), trainer);
  return run_trainer(alone, options, format, nullptr);
}

}  // namespace

void add_train(Commands& commands) {
  const auto [app, options] =
      commands.add<TrainCommandOptions>("train", "Train a model on this machine", train);
  train::TrainerOptions& trainer = options.trainer;
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option("--loss", options.loss,
                 "softmax_cross_entropy, sigmoid_cross_entropy, mse, huber or ctc, and settings: "
                 "output=, axis=, ignore=, weights=1:2:0.5, reduction=sum, delta=");
  app.add_option("--optimizer", options.optimizer,
                 "sgd, momentum, nesterov, rmsprop, adagrad, adam, adamw or lamb, and "
                 "settings: lr=, momentum=, "
                 "beta1=, beta2=, epsilon=, weight_decay=, clip=, loss_scale=");
  app.add_option(
      "--schedule", options.schedule,
      "constant, step or cosine, and settings: warm_up=, every=, factor=, total=, floor=");
  app.add_option("--data", trainer.data,
                 "@file.npz with an array for each input and `target`, or synthetic");
  app.add_option("--validation", trainer.validation_data,
                 "validation data, measured after each epoch");
  app.add_option("--validation-share", trainer.validation_share,
                 "share of the data that is held out (default: 0.1)")
      ->check(CLI::Range(0.0, 0.9));
  app.add_option("--samples", trainer.synthetic_samples,
                 "number of synthetic samples (default: 1024)")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--batch", trainer.batch_size, "samples per step (default: 32)")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--epochs", trainer.epochs, "number of epochs (default: 1)")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--steps", trainer.max_steps, "stop after this number of steps")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--parameters", trainer.train.parameters,
                 "patterns of constants to train (default: all)");
  app.add_option("--freeze", trainer.train.frozen, "patterns of constants to freeze");
  app.add_option("--checkpoint", trainer.checkpoint,
                 "folder for checkpoints of the training state");
  app.add_option("--checkpoint-every", trainer.checkpoint_every,
                 "steps between checkpoints (default: one epoch)")
      ->check(whole_number(1, kMostRuns));
  app.add_flag("--resume{always}", options.resume,
               "continue from the checkpoint; if-any: or start without one")
      ->type_name("[=if-any]");
  app.add_option("--seed", trainer.seed,
                 "seed of sample order, dropout and synthetic data (default: 1)");
  app.add_option("--threads", trainer.thread_count, "threads (default: all)")
      ->check(thread_count());
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
  app.add_option("--budget", trainer.budget.budget, kBudgetHelp);
  app.add_flag("--swap", trainer.budget.may_swap, kSwapHelp);
  app.add_flag("--split", trainer.budget.may_split, kSplitHelp);
  app.add_option("-o,--output", options.output,
                 "the trained model: FILE.onnx, FILE.tnn or FILE.tenon");
  app.add_option("--curve", options.curve,
                 "the learning curve: FILE.svg (default: curve.svg in the folder of checkpoints)");
  app.add_option("--parallel", options.parallel,
                 "data: data parallel over the ranks that mpirun started; tensor:N: "
                 "tensor parallel in groups of N ranks; data:M,tensor:N: both");
  app.add_option("--micro-batches", trainer.micro_batches,
                 "number of micro-batches of a batch (gradient accumulation; default: one for "
                 "each rank)")
      ->check(whole_number(1, kMostRuns));
  app.add_flag("--split-states{moments}", options.split_states,
               "ZeRO sharding: moments (stage 1; default if the optimizer allows it), "
               "gradients (stage 2), parameters (stage 3), or nothing");
  app.add_option("--bucket", options.bucket, "bytes of gradients per all-reduce (default: 4MiB)");
  app.add_flag("--print", options.print, "print the graph of a step without training");
}

}  // namespace tenon::cli
