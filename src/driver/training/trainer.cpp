#include "driver/training/trainer.h"

#include "base/error.h"
#include "base/text.h"

#include <chrono>
#include <cmath>
#include <filesystem>

namespace tenon {
namespace {

constexpr int kPointsPerRun = 400;  // of the curve, at most about so many

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The symbol that counts samples: the first that an input's first axes name.
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
  if (symbol) model = with_symbols(std::move(model), {{*symbol, Dim(batch_size)}});
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

// Along which axis each input of a step counts samples: where another batch has another extent.
DataSet::Axes sample_axes(const StatefulGraph& one, const StatefulGraph& other) {
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

void require_batch(const StatefulGraph& step, const DataSet::Axes& axes, std::int64_t batch_size) {
  for (std::size_t k : step.data_inputs()) {
    const Value& value = step.graph.value(step.graph.inputs()[k]);
    const Dims& dims = value.type.tensor().dims;
    if (dims.empty() || dims[axes.at(value.name)] == Dim(batch_size)) continue;
    throw Error("the model takes batches of another size", ErrorKind::Usage)
        .at("input '", value.name, "'")
        .expected(value.type)
        .got("batches of ", batch_size)
        .hint("give --batch=", dims[axes.at(value.name)],
              ", or a model whose batch is a symbol, as zoo:NAME?batch=N");
  }
}

std::int64_t class_count_of(const Graph& step, const LossOptions& loss) {
  if (loss.kind != "softmax_cross_entropy") return 0;
  const ValueId target = step.find(kTarget);
  for (NodeId reader : step.readers(target)) {
    const Node& node = step.node(reader);
    if (node.op->name != "nll_loss") continue;  // op-name: what softmax_cross_entropy is made with
    const Dim& classes = step.value(node.operands.front()).type.tensor().dims[1];
    if (classes.is_constant()) return classes.constant();
  }
  return 0;
}

double scalar(const Tensor& tensor) { return tensor.real_at(0); }

// Means of what came since they were last asked for.
struct Means {
  double loss = 0, accuracy = 0;
  std::int64_t count = 0;
  void add(double one_loss, double one_accuracy) {
    loss += one_loss;
    accuracy += one_accuracy;
    ++count;
  }
  CurvePoint point(std::int64_t step) const {
    const auto divisor = static_cast<double>(std::max<std::int64_t>(1, count));
    return {step, loss / divisor, accuracy / divisor, false};
  }
};

}  // namespace

Trainer::Trainer(Graph model, TrainerOptions options)
    : original_(std::move(model)), options_(std::move(options)) {
  if (options_.batch_size < 1)
    throw Error("a batch has at least one sample", ErrorKind::Usage).got(options_.batch_size);
  if (options_.epochs < 1)
    throw Error("training takes at least one epoch", ErrorKind::Usage).got(options_.epochs);
  model_ = with_batch(original_, options_.batch_size);
  load_data();
  ScheduleOptions& schedule = options_.train.schedule;
  if (schedule.kind == "cosine" && schedule.total <= 1) schedule.total = step_count();
  options_.train.seed = static_cast<std::int64_t>(options_.seed);
  const SessionOptions session{options_.thread_count, options_.target, options_.precision};
  step_ = std::make_unique<Session>(train(model_, options_.train), session);
  has_accuracy_ = static_cast<bool>(step_->graph().find(kAccuracy));
  checkpoint_.step_hash = hash_of(step_->step());
  checkpoint_.batch_size = options_.batch_size;
  checkpoint_.seed = options_.seed;
  checkpoint_.sample_count = training_->size();
  if (options_.resume) resume();
  if (validation_ && validation_->size() > 0) {
    evaluation_ = std::make_unique<Session>(evaluation(model_, options_.train), session);
  }
}

Trainer::~Trainer() = default;

std::int64_t Trainer::step_count() const {
  const std::int64_t all = steps_per_epoch() * options_.epochs;
  return options_.max_steps > 0 ? std::min(all, options_.max_steps) : all;
}

void Trainer::load_data() {
  const StatefulGraph step = evaluation(model_, options_.train);
  const StatefulGraph other =
      evaluation(with_batch(original_, options_.batch_size + 1), options_.train);
  const DataSet::Axes axes = sample_axes(step, other);
  require_batch(step, axes, options_.batch_size);
  const std::int64_t classes = class_count_of(step.graph, options_.train.loss);
  const auto read = [&](const std::string& text) {
    if (text == "synthetic")
      return DataSet(step, axes, options_.synthetic_samples, classes, options_.seed);
    if (text.rfind('@', 0) != 0) {
      throw Error("cannot read the data's description", ErrorKind::Usage)
          .expected("@file.npz or synthetic")
          .got(text);
    }
    return DataSet(text.substr(1), step, axes, classes, options_.train.loss.ignore_label);
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
  if (options_.checkpoint.empty()) {
    throw Error("nothing to resume from", ErrorKind::Usage)
        .hint("name the folder of checkpoints: --checkpoint=DIR");
  }
  Checkpoint found = read_checkpoint(options_.checkpoint);
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
}

std::optional<CurvePoint> Trainer::validate() {
  if (!evaluation_) return std::nullopt;
  evaluation_->set_states(step_->states());
  std::vector<std::int64_t> order(static_cast<std::size_t>(validation_->size()));
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k);
  CurvePoint point{checkpoint_.step, 0, 0, true};
  for (std::int64_t first = 0; first < validation_->size(); first += options_.batch_size) {
    // The last batch is filled up with samples that do not count.
    const std::vector<Tensor> outputs =
        evaluation_->run(validation_->batch(order, first, options_.batch_size));
    const std::int64_t count = std::min(options_.batch_size, validation_->size() - first);
    for (std::int64_t k = 0; k < count; ++k) {
      point.loss += outputs[0].real_at(k);
      if (has_accuracy_) point.accuracy += outputs[1].real_at(k);
    }
  }
  point.loss /= static_cast<double>(validation_->size());
  point.accuracy /= static_cast<double>(validation_->size());
  return point;
}

void Trainer::save() {
  if (options_.checkpoint.empty()) return;
  checkpoint_.states = step_->states();
  write_checkpoint(checkpoint_, options_.checkpoint);
  checkpoint_.states.clear();  // they share memory with the session
}

void Trainer::require_finite(double loss, const std::vector<Tensor>& batch) {
  if (std::isfinite(loss)) return;
  const std::string where = first_not_finite(step_->step(), step_->inputs_before(batch));
  throw Error(concat("the loss of step ", checkpoint_.step + 1, " is not finite"),
              ErrorKind::ComparisonFailed)
      .at(where.empty() ? std::string("compiled code only: the reference gives a finite loss")
                        : where)
      .got(format_real(loss))
      .hint(
          "a smaller rate (lr=…), a warm-up or clip=1 often helps; the checkpoint before this step "
          "is kept");
}

TrainResult Trainer::run() {
  const std::int64_t per_epoch = steps_per_epoch(), total = step_count();
  const std::int64_t point_every = std::max<std::int64_t>(1, total / kPointsPerRun);
  const std::int64_t first_step = checkpoint_.step;
  std::int64_t& step = checkpoint_.step;
  BatchLoader loader(*training_, options_.batch_size, options_.seed, step / per_epoch,
                     step % per_epoch);
  TrainResult result;
  result.has_accuracy = has_accuracy_;
  Means means;
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
    const std::vector<Tensor> batch = loader.next();
    const std::vector<Tensor> outputs = step_->run(batch);
    const double loss = scalar(outputs[0]), accuracy = has_accuracy_ ? scalar(outputs[1]) : 0;
    require_finite(loss, batch);
    ++step;
    means.add(loss, accuracy);
    const double elapsed = seconds_since(begin) - validation_s;
    result.samples_per_s =
        static_cast<double>((step - first_step) * options_.batch_size) / std::max(1e-9, elapsed);
    if (on_progress) {
      const CurvePoint mean = means.point(step);
      const double left =
          static_cast<double>((total - step) * options_.batch_size) / result.samples_per_s;
      on_progress({(step - 1) / per_epoch + 1, step, total, mean.loss, mean.accuracy,
                   result.samples_per_s, left});
    }
    if (step % point_every == 0 || step == total) {
      checkpoint_.curve.push_back(means.point(step));
      means = {};
    }
    const bool ends_epoch = step % per_epoch == 0 || step == total;
    if (ends_epoch) end_epoch();
    const bool is_due =
        options_.checkpoint_every > 0 ? step % options_.checkpoint_every == 0 : ends_epoch;
    result.was_stopped = should_stop && should_stop();
    if (is_due || step == total || result.was_stopped) save();
    if (result.was_stopped) break;
  }
  if (!result.validation || result.validation->step != step) result.validation = validate();
  result.curve = checkpoint_.curve;
  result.steps = step;
  result.model = with_states(original_, step_->states());
  return result;
}

}  // namespace tenon
