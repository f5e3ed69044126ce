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
  std::int64_t step = 0;  ///< done so far
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::int64_t sample_count = 0;
  std::string step_hash;  ///< of the graph of a step
  std::vector<CurvePoint> curve;
};

/// A text that differs where two graphs compute different things; initial values of states do not
/// count.
std::string hash_of(const StatefulGraph& step);

/// The checkpoint's file in a folder.
std::string checkpoint_path(const std::string& folder);
/// Writes it, in the safetensors format; the one before stays until the new one is complete. Makes
/// the folder.
void write_checkpoint(const Checkpoint& checkpoint, const std::string& folder);
/// Throws Error for a file that is damaged or is no checkpoint.
Checkpoint read_checkpoint(const std::string& folder);

}  // namespace tenon
