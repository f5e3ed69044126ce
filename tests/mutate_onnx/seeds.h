#pragma once

#include "driver/random.h"
#include "mutate.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// The models that mutants are made of: those in folders, small networks of the zoo, and random
/// graphs, which are made as they are asked for.
struct Seeds {
  struct Model {
    std::string name, bytes;
  };
  std::vector<Model> in_folders, networks;
  GenePool pool;
  /// else extents of inputs are numbers
  bool keeps_symbols = false;

  /// Reads `*/model.onnx` beneath the folders. Throws Error for one that is none.
  explicit Seeds(const std::vector<std::string>& folders);
  Model pick(Random& random) const;
};

}  // namespace tenon::testing
