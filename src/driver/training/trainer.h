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

struct TrainerOptions {
  TrainOptions train;
  std::string data = "synthetic";  ///< or `@file.npz`: an array for each input, and `target`
  std::string validation_data;  ///< likewise; empty: `validation_share` of the data's last samples
  double validation_share = 0.1;
  std::int64_t synthetic_samples = 1024;
  std::int64_t batch_size = 32, epochs = 1;
  std::int64_t max_steps = 0;         ///< stops after so many; 0: as many as the epochs have
  std::string checkpoint;             ///< a folder; empty: none are written
  std::int64_t checkpoint_every = 0;  ///< steps; 0: once an epoch
  bool resume = false;
  std::uint64_t seed = 1;
  int thread_count = 0;
  std::string target = "native", precision;  ///< as SessionOptions has them
};

/// The model for one extent of the batch. Throws Error (Unsupported) where other extents have no
/// value.
Graph with_batch(Graph model, std::int64_t batch_size);

/// What can be shown while it trains.
struct TrainProgress {
  std::int64_t epoch = 0, step = 0, step_count = 0;
  double loss = 0, accuracy = 0;  ///< means since the last point of the curve
  double samples_per_s = 0, seconds_left = 0;
};

struct TrainResult {
  Graph model;  ///< with what was learnt, as it was given otherwise
  std::vector<CurvePoint> curve;
  std::optional<CurvePoint> validation;  ///< the last
  std::int64_t steps = 0;
  bool has_accuracy = false, was_stopped = false;
  double samples_per_s = 0;
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
  const Session& session() const { return *step_; }

  std::function<void(const TrainProgress&)> on_progress;
  std::function<void(const CurvePoint&)> on_validation;
  std::function<bool()> should_stop;

  TrainResult run();

 private:
  std::int64_t steps_per_epoch() const { return training_->size() / options_.batch_size; }
  void load_data();
  void resume();
  std::optional<CurvePoint> validate();
  void save();
  void require_finite(double loss, const std::vector<Tensor>& batch);

  Graph original_;
  Graph model_;  // with the batch's extent in place
  TrainerOptions options_;
  std::unique_ptr<Session> step_, evaluation_;
  std::unique_ptr<DataSet> training_, validation_;
  Checkpoint checkpoint_;
  std::string note_;
  bool has_accuracy_ = false;
};

}  // namespace tenon
