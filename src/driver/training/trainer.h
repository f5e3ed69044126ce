#pragma once

#include "driver/training/checkpoint.h"
#include "driver/training/data.h"
#include "passes/train/train.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What of the states of training every rank holds a piece of; each includes those before it.
/// `Fastest`: what takes the least time, which is the optimiser's moments where it allows that.
enum class RankSplit : std::uint8_t { Fastest, Nothing, Moments, Gradients, Parameters };

struct TrainerOptions {
  TrainOptions train;
  /// or `@file.npz`: an array for each input, and `target`
  std::string data = "synthetic";
  /// likewise; empty: `validation_share` of the data's last samples
  std::string validation_data;
  double validation_share = 0.1;
  std::int64_t synthetic_samples = 1024;
  std::int64_t batch_size = 32, epochs = 1;
  /// stops after so many; 0: as many as the epochs have
  std::int64_t max_steps = 0;
  /// a folder; empty: none are written
  std::string checkpoint;
  /// steps; 0: once an epoch
  std::int64_t checkpoint_every = 0;
  bool resume = false;
  /// from the beginning where there is no checkpoint yet
  bool resume_if_any = false;
  std::uint64_t seed = 1;
  int thread_count = 0;
  /// of a step's memory; its text empty: none
  BudgetRequest budget = {};
  /// as SessionOptions has them
  std::string target = "native", precision;

  /// The ranks that train together, each a trainer with the same options; they outlive it. Null:
  /// this one alone.
  Communicator* ranks = nullptr;
  /// A batch is worked off in so many parts of one size, each by one of the ranks, whose sums are
  /// added in order: what is learnt depends on this number and not on that of the ranks. 0: as the
  /// checkpoint says, or else one for each rank.
  std::int64_t parts = 0;
  /// Ranks in groups of so many share out tensors: each holds a part of the parameters and computes
  /// a part of the products, on the same part of the batch as the others of its group.
  std::int64_t tensor_ranks = 1;
  RankSplit split = RankSplit::Fastest;
  std::size_t bucket_bytes = SessionRanks{}.bucket_bytes;
};

/// The model for one extent of the batch. Throws Error (Unsupported) where other extents have no
/// value.
Graph with_batch(Graph model, std::int64_t batch_size);

/// What can be shown while it trains.
struct TrainProgress {
  std::int64_t epoch = 0, step = 0, step_count = 0;
  /// means since the last point of the curve
  double loss = 0, accuracy = 0;
  double samples_per_s = 0, seconds_left = 0;
};

struct TrainResult {
  /// with what was learnt, as it was given otherwise
  Graph model;
  std::vector<CurvePoint> curve;
  /// the last
  std::optional<CurvePoint> validation;
  std::int64_t steps = 0;
  bool has_accuracy = false, was_stopped = false;
  double samples_per_s = 0;
  CommunicationTimes communication;
};

/// Trains a model: batches made in a thread beside, validation after each epoch, checkpoints.
/// Throws Error (ComparisonFailed) naming the node where the loss stops being finite; the
/// checkpoint before stays.
class Trainer {
 public:
  Trainer(Graph model, TrainerOptions options);
  ~Trainer();

  /// Words about what was found when training is taken up again; empty where nothing is to be said.
  const std::string& note() const { return note_; }
  std::int64_t sample_count() const { return training_->size(); }
  std::int64_t step_count() const;
  std::int64_t part_count() const { return options_.parts; }
  const Session& session() const { return *step_; }
  /// Throws Error (Usage), on every rank the same, where they do not train the same: another
  /// program, model, data or checkpoint. All ranks call it before they run.
  void check_ranks() const;

  std::function<void(const TrainProgress&)> on_progress;
  std::function<void(const CurvePoint&)> on_validation;
  std::function<bool()> should_stop;

  TrainResult run();

 private:
  std::int64_t steps_per_epoch() const { return training_->size() / options_.batch_size; }
  int rank() const { return options_.ranks == nullptr ? 0 : options_.ranks->rank(); }
  int rank_count() const { return options_.ranks == nullptr ? 1 : options_.ranks->size(); }
  // Of the groups that share out tensors, each of which takes parts of the batch.
  int data_rank() const { return rank() / static_cast<int>(options_.tensor_ranks); }
  int data_rank_count() const { return rank_count() / static_cast<int>(options_.tensor_ranks); }
  bool has_budget() const { return !options_.budget.budget.empty(); }
  void choose_parts();
  void load_data();
  void resume();
  std::optional<CurvePoint> validate();
  void save();
  void require_finite(double loss, const std::vector<Tensor>& batch);

  Graph original_;
  Graph model_;  // with the batch's extent in place
  TrainerOptions options_;
  std::int64_t part_size_ = 0;
  std::int64_t evaluated_size_ = 0;  // samples that are validated at a time
  std::optional<Checkpoint> found_;  // to resume from, until it is taken up
  std::unique_ptr<Session> step_, evaluation_;
  std::unique_ptr<DataSet> training_, validation_;
  Checkpoint checkpoint_;
  std::string note_;
  bool has_accuracy_ = false;
};

}  // namespace tenon
