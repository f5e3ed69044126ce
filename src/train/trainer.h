#pragma once

#include "passes/train/train.h"
#include "target/target_spec.h"
#include "train/checkpoint.h"
#include "train/data.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::train {

/// ZeRO stages: the training state that is split over ranks, each including the previous ones.
/// `Fastest`: the fastest choice, which is the optimizer's moments if it permits that.
enum class RankSplit : std::uint8_t { Fastest, Nothing, Moments, Gradients, Parameters };

struct TrainerOptions {
  passes::TrainOptions train;
  /// or `@file.npz`: an array for each input, and `target`
  std::string data = "synthetic";
  /// likewise; empty: the last `validation_share` of the samples
  std::string validation_data;
  double validation_share = 0.1;
  std::int64_t synthetic_samples = 1024;
  std::int64_t batch_size = 32, epochs = 1;
  /// stops after that many steps; 0: all steps of the epochs
  std::int64_t max_steps = 0;
  /// a folder; empty: no checkpoints
  std::string checkpoint;
  /// steps; 0: once per epoch
  std::int64_t checkpoint_every = 0;
  bool resume = false;
  /// starts from scratch if a checkpoint does not exist yet
  bool resume_if_any = false;
  std::uint64_t seed = 1;
  int thread_count = 0;
  /// of a step's memory; an empty text disables it
  planning::BudgetRequest budget = {};
  /// as in SessionOptions
  TargetSpec target = {};

  /// Ranks of distributed training, each with a trainer of the same options; must outlive it. Null:
  /// a single process.
  Communicator* ranks = nullptr;
  /// Number of equal parts of a batch, each processed by one of the ranks, whose sums are added in
  /// order: results depend on this number and not on the number of ranks. 0: as in the checkpoint,
  /// or one per rank.
  std::int64_t micro_batches = 0;
  /// Tensor parallelism: ranks in groups of this size each hold a shard of the parameters and
  /// compute a part of the products, on the same part of the batch.
  std::int64_t tensor_ranks = 1;
  RankSplit split = RankSplit::Fastest;
  std::size_t bucket_bytes = SessionRanks{}.bucket_bytes;
};

/// Returns the model for a fixed batch: binds the batch symbol, or changes a fixed batch as
/// `rebatched` does. Throws Error (Unsupported) if other extents are unbound.
Graph with_batch(Graph model, std::int64_t batch_size);

/// Progress of a training run.
struct TrainProgress {
  std::int64_t epoch = 0, step = 0, step_count = 0;
  /// means since the last point of the curve
  double loss = 0, accuracy = 0;
  double samples_per_s = 0, seconds_left = 0;
};

struct TrainResult {
  /// the given model with trained weights
  Graph model;
  std::vector<CurvePoint> curve;
  /// the last one
  std::optional<CurvePoint> validation;
  std::int64_t steps = 0;
  bool has_accuracy = false, was_stopped = false;
  double samples_per_s = 0;
  distributed::CommunicationTimes communication;
};

/// Trains a model with prefetched batches, validation after each epoch and checkpoints. Throws
/// Error (ComparisonFailed) naming the node if the loss becomes non-finite; the previous checkpoint
/// stays.
class Trainer {
 public:
  Trainer(Graph model, TrainerOptions options);
  ~Trainer();

  /// Message about the checkpoint that training resumes from; may be empty.
  const std::string& note() const { return note_; }
  std::int64_t sample_count() const { return training_->size(); }
  std::int64_t step_count() const;
  std::int64_t micro_batch_count() const { return options_.micro_batches; }
  const Session& session() const { return *step_; }
  /// Throws Error (Usage), the same on every rank, if ranks differ in program, model, data or
  /// checkpoint. Collective: all ranks must call it before `run`.
  void check_ranks() const;

  std::function<void(const TrainProgress&)> on_progress;
  std::function<void(const CurvePoint&)> on_validation;
  std::function<bool()> should_stop;

  TrainResult run();

 private:
  std::int64_t steps_per_epoch() const { return training_->size() / options_.batch_size; }
  int rank() const { return options_.ranks == nullptr ? 0 : options_.ranks->rank(); }
  int rank_count() const { return options_.ranks == nullptr ? 1 : options_.ranks->size(); }
  // Rank among the tensor-parallel groups, each of which processes parts of the batch.
  int data_rank() const { return rank() / static_cast<int>(options_.tensor_ranks); }
  int data_rank_count() const { return rank_count() / static_cast<int>(options_.tensor_ranks); }
  bool has_budget() const { return !options_.budget.budget.empty(); }
  void choose_micro_batches();
  void load_data();
  void resume();
  std::optional<CurvePoint> validate();
  void save();
  void require_finite(double loss, const std::vector<Tensor>& batch);

  Graph original_;
  Graph model_;  // with a fixed batch
  TrainerOptions options_;
  std::int64_t micro_batch_size_ = 0;
  std::int64_t evaluated_size_ = 0;  // batch size of validation
  std::optional<Checkpoint> found_;  // checkpoint to resume from, until it is applied
  std::unique_ptr<Session> step_, evaluation_;
  std::unique_ptr<DataSet> training_, validation_;
  Checkpoint checkpoint_;
  std::string note_;
  bool has_accuracy_ = false;
};

}  // namespace tenon::train
