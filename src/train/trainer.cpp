#include "train/trainer.h"

#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "models/rebatch.h"
#include "ops/families/collective.h"
#include "passes/shard/shard.h"
#include "program/checksum.h"

#include <chrono>
#include <cmath>
#include <filesystem>

namespace tenon::train {
namespace {

constexpr int kPointsPerRun = 400;  // largest number of points of the learning curve, approximately

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns the batch symbol: the first one in the inputs' types.
std::optional<std::string> batch_symbol(const Graph& model) {
  for (ValueId input : model.inputs()) {
    const Type& type = model.value(input).type;
    if (!type.is_tensor()) continue;
    for (const Dim& dim : type.tensor().dims) {
      if (const auto symbol = dim.symbol_name()) return std::string(*symbol);
    }
  }
  return std::nullopt;
}

}  // namespace

Graph with_batch(Graph model, std::int64_t batch_size) {
  const std::optional<std::string> symbol = batch_symbol(model);
  if (symbol) {
    model = passes::with_symbols(std::move(model), {{*symbol, Dim(batch_size)}});
  } else if (models::batch_of(model)) {
    model = models::rebatched(std::move(model), batch_size);
  }
  for (ValueId input : model.inputs()) {
    const Value& value = model.value(input);
    if (!value.type.is_tensor()) {
      throw Error(concat("cannot train: input '", value.name, "' is not a tensor"),
                  ErrorKind::Unsupported)
          .got(value.type);
    }
    for (const Dim& dim : value.type.tensor().dims) {
      if (dim.is_constant()) continue;
      throw Error(concat("cannot train: an extent of input '", value.name, "' is not known"),
                  ErrorKind::Unsupported)
          .got(value.type)
          .hint("give the model numbers for all extents but that of the batch");
    }
  }
  return model;
}

namespace {

// Returns the model for another batch, or for the one that it is written for.
Graph with_batch_if_possible(const Graph& model, std::int64_t batch_size) {
  try {
    return with_batch(model, batch_size);
  } catch (const Error&) {
    return model;
  }
}

// Returns the sample axis of each input of a step: the axis whose extent differs with the batch.
DataSet::Axes sample_axes(const passes::StatefulGraph& one, const passes::StatefulGraph& other) {
  DataSet::Axes axes;
  for (std::size_t k : one.data_inputs()) {
    const Value& value = one.graph.value(one.graph.inputs()[k]);
    const Dims& a = value.type.tensor().dims;
    const Dims& b = other.graph.value(other.graph.inputs()[k]).type.tensor().dims;
    std::size_t axis = 0;
    while (axis < a.size() && a[axis] == b[axis]) ++axis;
    axes[value.name] = axis < a.size() ? axis : 0;
  }
  return axes;
}

void require_batch(const passes::StatefulGraph& step, const DataSet::Axes& axes,
                   std::int64_t batch_size, std::int64_t micro_batches) {
  for (std::size_t k : step.data_inputs()) {
    const Value& value = step.graph.value(step.graph.inputs()[k]);
    const Dims& dims = value.type.tensor().dims;
    if (dims.empty() || dims[axes.at(value.name)] == Dim(batch_size)) continue;
    throw Error("the model takes batches of another size", ErrorKind::Usage)
        .at("input '", value.name, "'")
        .expected(value.type)
        .got("batches of ", batch_size)
        .hint("give --batch=", dims[axes.at(value.name)] * micro_batches,
              ", or a model whose batch is a symbol, as zoo:NAME?batch=N");
  }
}

LabelRules label_rules(const Graph& step, const Graph& model, const passes::LossOptions& loss) {
  LabelRules rules{.class_count = 0, .ignored = loss.ignore_label};
  if (loss.kind == "ctc") {
    for (ValueId output : model.outputs()) {
      if (!loss.output.empty() && model.value(output).name != loss.output) continue;
      const Dims& dims = model.value(output).type.tensor().dims;
      const Dim& steps = dims[static_cast<std::size_t>(loss.time_axis)];
      if (!dims.back().is_constant() || !steps.is_constant()) break;
      rules.class_count = dims.back().constant();
      rules.sequence = {loss.blank, steps.constant()};
      break;
    }
  }
  if (loss.kind != "softmax_cross_entropy") return rules;
  const ValueId target = step.find(passes::kTarget);
  for (NodeId reader : step.readers(target)) {
    const Node& node = step.node(reader);
    if (node.op->name != "nll_loss") continue;  // op-name: softmax_cross_entropy expands to it
    const Dim& classes = step.value(node.operands.front()).type.tensor().dims[1];
    if (classes.is_constant()) rules.class_count = classes.constant();
  }
  return rules;
}

double scalar(const Tensor& tensor) { return tensor.real_at(0); }

}  // namespace

Trainer::Trainer(Graph model, TrainerOptions options)
    : original_(std::move(model)), options_(std::move(options)) {
  if (options_.batch_size < 1)
    throw Error("a batch has at least one sample", ErrorKind::Usage).got(options_.batch_size);
  if (options_.epochs < 1)
    throw Error("training takes at least one epoch", ErrorKind::Usage).got(options_.epochs);
  choose_micro_batches();
  model_ = with_batch(original_, micro_batch_size_);
  load_data();
  passes::ScheduleOptions& schedule = options_.train.schedule;
  if (schedule.kind == "cosine" && schedule.total <= 1) schedule.total = step_count();
  options_.train.seed = static_cast<std::int64_t>(options_.seed);
  options_.budget.threads = options_.thread_count;
  SessionOptions session{options_.thread_count, options_.target, options_.budget};
  if (options_.budget.may_split) session.split = planning::split_of(model_, options_.train);
  const SessionRanks ranks{options_.ranks,
                           options_.micro_batches,
                           options_.bucket_bytes,
                           options_.tensor_ranks,
                           options_.split >= RankSplit::Gradients,
                           micro_batch_size_};
  options_.train.micro_batches = options_.micro_batches;
  // The hash excludes the splitting of states, which does not affect results.
  passes::StatefulGraph step = passes::train(model_, options_.train);
  checkpoint_.step_hash = hash_of(step);
  // One rank on a GPU uses the same path as several, with NCCL.
  const bool is_alone_on_gpu =
      rank_count() == 1 && options_.ranks != nullptr && options_.target.is_gpu();
  if (options_.split >= RankSplit::Moments && (rank_count() > 1 || is_alone_on_gpu)) {
    options_.train.state_ranks = rank_count();
    options_.train.splits_parameters = options_.split == RankSplit::Parameters || is_alone_on_gpu;
    step = passes::train(model_, options_.train);
  }
  if (options_.tensor_ranks > 1) step = shard(step, {options_.tensor_ranks, data_rank_count(), {}});
  step_ = std::make_unique<Session>(std::move(step), session, ranks);
  evaluated_size_ = micro_batch_size_;
  if (step_->budget() != nullptr && step_->budget()->report().micro_batches > 1) {
    // Results depend on the order of sums.
    checkpoint_.step_hash = hash_of(step_->step());
    evaluated_size_ /= step_->budget()->report().micro_batches;
  }
  has_accuracy_ = static_cast<bool>(step_->graph().find(passes::kAccuracy));
  checkpoint_.batch_size = options_.batch_size;
  checkpoint_.micro_batches = options_.micro_batches;
  checkpoint_.seed = options_.seed;
  checkpoint_.sample_count = training_->size();
  if (found_) resume();
  if (validation_ && validation_->size() > 0) {
    if (step_->budget() != nullptr) {
      session.budget.arena_bytes = step_->budget()->report().budget_bytes;
    } else if (has_budget()) {
      session.budget.arena_bytes = step_->needs().arena;
    }
    session.budget.may_split = false;
    Graph validated = models::rebatched(model_, evaluated_size_);
    evaluation_ = std::make_unique<Session>(
        passes::evaluation(std::move(validated), options_.train), session);
  }
}

Trainer::~Trainer() = default;

void Trainer::choose_micro_batches() {
  if (rank_count() % options_.tensor_ranks != 0) {
    throw Error("the number of ranks is not a multiple of the tensor-parallel group size",
                ErrorKind::Usage)
        .expected("a multiple of ", options_.tensor_ranks)
        .got(rank_count());
  }
  if (options_.split == RankSplit::Fastest) {
    const passes::OptimizerOptions& optimizer = options_.train.optimizer;
    const bool reads_whole_gradients =
        optimizer.kind == "lamb" || optimizer.clip_norm > 0 || optimizer.loss_scale < 0;
    options_.split = options_.tensor_ranks > 1 || reads_whole_gradients ? RankSplit::Nothing
                                                                        : RankSplit::Moments;
  }
  if (options_.tensor_ranks > 1 && options_.split >= RankSplit::Moments) {
    throw Error("states cannot be split twice", ErrorKind::Unsupported)
        .hint("ranks that share out tensors hold their states in part: leave --split-states out");
  }
  if (options_.resume) {
    if (options_.checkpoint.empty()) {
      throw Error("no checkpoint to resume from", ErrorKind::Usage)
          .hint("name the folder of checkpoints: --checkpoint=DIR");
    }
    const bool is_there = has_checkpoint(options_.checkpoint);
    if (!is_there && !options_.resume_if_any) {
      throw Error("there is no checkpoint to resume from", ErrorKind::Usage)
          .at(checkpoint_path(options_.checkpoint))
          .hint("--resume=if-any begins where there is none yet");
    }
    if (is_there) found_ = read_checkpoint(options_.checkpoint);
  }
  if (!options_.resume && !options_.checkpoint.empty() && has_checkpoint(options_.checkpoint)) {
    throw Error("the folder has the checkpoint of another run, which this one would overwrite",
                ErrorKind::Usage)
        .at(checkpoint_path(options_.checkpoint))
        .hint("--resume goes on from it; else name another folder, or remove this one");
  }
  if (options_.micro_batches == 0)
    options_.micro_batches = found_ && found_->micro_batches % data_rank_count() == 0
                                 ? found_->micro_batches
                                 : data_rank_count();
  if (options_.micro_batches % data_rank_count() != 0) {
    throw Error("the number of micro-batches is not a multiple of the number of ranks",
                ErrorKind::Usage)
        .expected("a multiple of ", data_rank_count(), " parts")
        .got(options_.micro_batches);
  }
  if (options_.batch_size % options_.micro_batches != 0) {
    throw Error("the batch size is not a multiple of the number of micro-batches", ErrorKind::Usage)
        .expected("a multiple of ", options_.micro_batches, " samples")
        .got(options_.batch_size)
        .hint("give --batch=",
              (options_.batch_size / options_.micro_batches + 1) * options_.micro_batches,
              ", or another number of --micro-batches");
  }
  micro_batch_size_ = options_.batch_size / options_.micro_batches;
}

// Detects ranks with different models or data, which would otherwise train on meaningless sums
// without an error.
void Trainer::check_ranks() const {
  if (options_.ranks == nullptr || rank_count() == 1) return;
  std::string start;  // initial parameter values
  for (const passes::State& state : step_->step().states) {
    const Tensor initial = state.initial.materialise();
    start += concat(checksum(initial.bytes()), ";");
  }
  const std::vector<std::pair<const char*, std::string>> facts = {
      {"version of Tenon", kVersion},
      {"model or options", checkpoint_.step_hash},
      {"parameters to begin with", std::to_string(checksum(std::as_bytes(std::span(start))))},
      {"data", concat(training_->size(), " samples, batches of ", options_.batch_size, ", seed ",
                      options_.seed, ", ", step_count(), " steps")},
      {"checkpoint", concat("of step ", checkpoint_.step)},
      {"machine code", step_->ranked()->code_hash()},
  };
  for (const auto& [what, mine] : facts) {
    const std::vector<std::string> all = options_.ranks->all_gather(mine);
    for (std::size_t k = 1; k < all.size(); ++k) {
      if (all[k] == all[0]) continue;
      throw Error(concat("rank ", k, " has another ", what, " than rank 0"), ErrorKind::Usage)
          .expected(all[0])
          .got(all[k])
          .hint(
              "start all ranks with the same program, files and options, on processors of one "
              "kind");
    }
  }
}

std::int64_t Trainer::step_count() const {
  const std::int64_t all = steps_per_epoch() * options_.epochs;
  return options_.max_steps > 0 ? std::min(all, options_.max_steps) : all;
}

void Trainer::load_data() {
  const passes::StatefulGraph step = passes::evaluation(model_, options_.train);
  const passes::StatefulGraph other =
      passes::evaluation(with_batch_if_possible(original_, micro_batch_size_ + 1), options_.train);
  const DataSet::Axes axes = sample_axes(step, other);
  require_batch(step, axes, micro_batch_size_, options_.micro_batches);
  const LabelRules rules = label_rules(step.graph, model_, options_.train.loss);
  const auto read = [&](const std::string& text) {
    if (text == "synthetic")
      return DataSet(step, axes, options_.synthetic_samples, rules, options_.seed);
    if (text.rfind('@', 0) != 0) {
      throw Error("cannot read the data's description", ErrorKind::Usage)
          .expected("@file.npz or synthetic")
          .got(text);
    }
    return DataSet(text.substr(1), step, axes, rules);
  };
  training_ = std::make_unique<DataSet>(read(options_.data));
  if (!options_.validation_data.empty()) {
    validation_ = std::make_unique<DataSet>(read(options_.validation_data));
  } else {
    auto [first, last] = training_->divided(options_.validation_share);
    *training_ = std::move(first);
    validation_ = std::make_unique<DataSet>(std::move(last));
  }
  if (steps_per_epoch() == 0) {
    throw Error("the data has fewer samples than a batch", ErrorKind::Usage)
        .got(training_->size(), " samples to train on, batches of ", options_.batch_size);
  }
}

void Trainer::resume() {
  Checkpoint found = std::move(*found_);
  found_.reset();
  try {
    step_->set_states(found.states);
  } catch (Error& error) {
    throw error.at(checkpoint_path(options_.checkpoint))
        .hint("the checkpoint is of another model or optimizer");
  }
  const bool is_exact =
      found.step_hash == checkpoint_.step_hash && found.batch_size == checkpoint_.batch_size &&
      found.seed == checkpoint_.seed && found.sample_count == checkpoint_.sample_count;
  note_ = concat("resumed at step ", found.step,
                 is_exact ? ""
                          : "; the model, options or data are not those of the checkpoint, so the "
                            "run goes another way than without a stop");
  checkpoint_.step = found.step;
  checkpoint_.curve = std::move(found.curve);
  checkpoint_.sums = found.sums;
}

std::optional<CurvePoint> Trainer::validate() {
  if (!evaluation_) return std::nullopt;
  // Only one of the two arenas fits into the budget at a time.
  if (has_budget()) step_->rest();
  evaluation_->set_states(step_->gathered_states());
  std::vector<std::int64_t> order(static_cast<std::size_t>(validation_->size()));
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k);
  CurvePoint point{checkpoint_.step, 0, 0, true};
  // Distributes batches round robin over ranks; their sums are added in batch order.
  const std::int64_t batch_count = (validation_->size() + evaluated_size_ - 1) / evaluated_size_;
  Tensor sums(DType::F64, {batch_count, 2});
  for (std::int64_t batch = rank(); batch < batch_count; batch += rank_count()) {
    // The last batch is padded with samples that are not counted.
    const std::int64_t first = batch * evaluated_size_;
    const std::vector<Tensor> outputs =
        evaluation_->run(validation_->batch(order, first, evaluated_size_));
    const std::int64_t count = std::min(evaluated_size_, validation_->size() - first);
    double loss = 0, accuracy = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      loss += outputs[0].real_at(k);
      if (has_accuracy_) accuracy += outputs[1].real_at(k);
    }
    sums.set_real(2 * batch, loss);
    sums.set_real(2 * batch + 1, accuracy);
  }
  if (rank_count() > 1) {  // every number is zero on all ranks but one
    RankSum all(*options_.ranks, DType::F64, static_cast<std::size_t>(sums.size()));
    all.add(sums.bytes());
    all.take(sums.mutable_bytes());
  }
  for (std::int64_t batch = 0; batch < batch_count; ++batch) {
    point.loss += sums.real_at(2 * batch);
    point.accuracy += sums.real_at(2 * batch + 1);
  }
  if (has_budget()) evaluation_->rest();
  point.loss /= static_cast<double>(validation_->size());
  point.accuracy /= static_cast<double>(validation_->size());
  return point;
}

void Trainer::save() {
  if (options_.checkpoint.empty()) return;
  checkpoint_.states = step_->gathered_states(false);
  if (rank_count() > 1) {
    write_checkpoint(checkpoint_, step_->pieces(), options_.checkpoint, *options_.ranks);
  } else {
    write_checkpoint(checkpoint_, options_.checkpoint);
  }
  checkpoint_.states.clear();  // they share memory with the session
}

void Trainer::require_finite(double loss, const std::vector<Tensor>& batch) {
  if (std::isfinite(loss)) return;
  // With collectives inside, the graph cannot be left at the first non-finite value.
  std::string where = options_.tensor_ranks > 1 || options_.split == RankSplit::Parameters
                          ? "some node: ranks that hold whole parameters tell which"
                          : first_not_finite(step_->step(), step_->inputs_before(batch));
  if (rank_count() > 1) {  // the part of one rank is the cause
    const std::vector<std::string> found = options_.ranks->all_gather(where);
    for (std::size_t k = found.size(); k-- > 0;) {
      if (!found[k].empty()) where = concat("rank ", k, ", ", found[k]);
    }
  }
  throw Error(concat("the loss of step ", checkpoint_.step + 1, " is not finite"),
              ErrorKind::ComparisonFailed)
      .at(where.empty() ? std::string("compiled code only: the reference gives a finite loss")
                        : where)
      .got(format_real(loss))
      .hint("a smaller rate (lr=…), a warm-up or clip=1 often helps",
            options_.checkpoint.empty() ? "" : "; the checkpoint before this step is kept");
}

TrainResult Trainer::run() {
  const std::int64_t per_epoch = steps_per_epoch(), total = step_count();
  const std::int64_t point_every = std::max<std::int64_t>(1, total / kPointsPerRun);
  const std::int64_t first_step = checkpoint_.step;
  std::int64_t& step = checkpoint_.step;
  BatchLoader loader(*training_, options_.batch_size, options_.seed, step / per_epoch,
                     step % per_epoch, {options_.micro_batches, data_rank(), data_rank_count()});
  TrainResult result;
  result.has_accuracy = has_accuracy_;
  const Clock::time_point begin = Clock::now();
  double validation_s = 0;
  const auto end_epoch = [&] {
    const Clock::time_point validation_begin = Clock::now();
    result.validation = validate();
    if (result.validation) {
      checkpoint_.curve.push_back(*result.validation);
      if (on_validation) on_validation(*result.validation);
    }
    validation_s += seconds_since(validation_begin);
  };
  while (step < total) {
    const std::vector<std::vector<Tensor>> batch = loader.next_micro_batches();
    if (step_->ranked() != nullptr) step_->ranked()->set_flag(should_stop && should_stop());
    const std::vector<Tensor> outputs = step_->run_micro_batches(batch);
    const double loss = scalar(outputs[0]), accuracy = has_accuracy_ ? scalar(outputs[1]) : 0;
    require_finite(loss, batch.back());
    ++step;
    checkpoint_.sums.add(loss, accuracy);
    const double elapsed = seconds_since(begin) - validation_s;
    result.samples_per_s =
        static_cast<double>((step - first_step) * options_.batch_size) / std::max(1e-9, elapsed);
    if (on_progress) {
      const CurvePoint mean = checkpoint_.sums.means(step);
      const double left =
          static_cast<double>((total - step) * options_.batch_size) / result.samples_per_s;
      on_progress({(step - 1) / per_epoch + 1, step, total, mean.loss, mean.accuracy,
                   result.samples_per_s, left});
    }
    if (step % point_every == 0 || step == total) {
      checkpoint_.curve.push_back(checkpoint_.sums.means(step));
      checkpoint_.sums = {};
    }
    const bool ends_epoch = step % per_epoch == 0 || step == total;
    if (ends_epoch) end_epoch();
    const bool is_due =
        options_.checkpoint_every > 0 ? step % options_.checkpoint_every == 0 : ends_epoch;
    // All ranks stop after the same step.
    result.was_stopped =
        step_->ranked() != nullptr ? step_->ranked()->flags() > 0 : should_stop && should_stop();
    if (is_due || step == total || result.was_stopped) save();
    if (result.was_stopped) break;
  }
  if (!result.validation || result.validation->step != step) result.validation = validate();
  result.curve = checkpoint_.curve;
  result.steps = step;
  if (step_->ranked() != nullptr) result.communication = step_->ranked()->times();
  result.model = passes::with_states(original_, step_->gathered_states());
  return result;
}

}  // namespace tenon::train
