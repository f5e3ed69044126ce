#pragma once

#include "driver/training/session.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// A point of the learning curve: means since the point before.
struct CurvePoint {
  std::int64_t step = 0;
  double loss = 0, accuracy = 0;
  bool is_validation = false;
};

/// All that training needs to go on as if it had not stopped.
struct Checkpoint {
  States states;
  /// done so far
  std::int64_t step = 0;
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::int64_t sample_count = 0;
  /// that a batch comes in
  std::int64_t parts = 1;
  /// of the graph of a step
  std::string step_hash;
  std::vector<CurvePoint> curve;
};

/// A text that differs where two graphs compute different things; initial values of states do not
/// count.
std::string hash_of(const StatefulGraph& step);

/// The checkpoint's file in a folder; of one that ranks wrote, the list of their files.
std::string checkpoint_path(const std::string& folder);
bool has_checkpoint(const std::string& folder);
/// Writes it, in the safetensors format; the one before stays until the new one is complete. Makes
/// the folder.
void write_checkpoint(const Checkpoint& checkpoint, const std::string& folder);
/// The same by all ranks at once, each a file with its share of the states, which are the same
/// on all of them, and its pieces of those that are split; then the list of files, which makes the
/// checkpoint appear. Throws on every rank where one of them cannot write.
void write_checkpoint(const Checkpoint& checkpoint, const std::vector<StatePiece>& pieces,
                      const std::string& folder, Communicator& ranks);
/// By however many ranks it was written; states that were split are whole again. Throws Error for
/// files that are damaged or no checkpoint.
Checkpoint read_checkpoint(const std::string& folder);

}  // namespace tenon
