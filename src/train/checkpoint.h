#pragma once

#include "train/session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::train {

/// A point of the learning curve: means since the previous point.
struct CurvePoint {
  std::int64_t step = 0;
  double loss = 0, accuracy = 0;
  bool is_validation = false;
};

/// Sums over the steps since the last training point of the curve.
struct CurveSums {
  double loss = 0, accuracy = 0;
  std::int64_t count = 0;

  void add(double step_loss, double step_accuracy);
  CurvePoint means(std::int64_t step) const;
};

/// State of a training run, complete for a bit-exact resume.
struct Checkpoint {
  States states;
  /// steps done so far
  std::int64_t step = 0;
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::int64_t sample_count = 0;
  /// parts of a batch
  std::int64_t micro_batches = 1;
  /// of the graph of a step
  std::string step_hash;
  std::vector<CurvePoint> curve;
  CurveSums sums;
};

/// Returns a hash that differs if two graphs compute different functions; initial values of states
/// are not included.
std::string hash_of(const passes::StatefulGraph& step);

/// Returns the checkpoint's file in a folder; for a checkpoint of several ranks, the list of their
/// files.
std::string checkpoint_path(const std::string& folder);
bool has_checkpoint(const std::string& folder);
/// Writes a checkpoint in the safetensors format; the previous one stays until the new one is
/// complete. Creates the folder.
void write_checkpoint(const Checkpoint& checkpoint, const std::string& folder);
/// Distributed checkpoint: each rank writes a file with its share of the replicated states and its
/// pieces of split states; then the list of files makes the checkpoint visible. Throws on every
/// rank if one of them cannot write.
void write_checkpoint(const Checkpoint& checkpoint, const std::vector<StatePiece>& pieces,
                      const std::string& folder, Communicator& ranks);
/// Reads a checkpoint of any number of ranks; split states become whole. Throws Error for files
/// that are damaged or not a checkpoint.
Checkpoint read_checkpoint(const std::string& folder);

}  // namespace tenon::train
