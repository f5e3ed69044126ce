#pragma once

#include "train/checkpoint.h"

#include <map>
#include <string>

namespace tenon::train {

/// Writes one file of a checkpoint, with `more` as additional metadata.
void write_checkpoint_file(const Checkpoint& checkpoint, const std::string& path,
                           const std::map<std::string, std::string>& more = {});
/// Throws Error for a file that is damaged or not a checkpoint.
Checkpoint read_checkpoint_file(const std::string& path,
                                std::map<std::string, std::string>* metadata = nullptr);

}  // namespace tenon::train
