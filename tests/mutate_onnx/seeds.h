#pragma once

#include "mutate.h"
#include "testing/random.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// Seed models of mutants: models in folders, small networks of the zoo, and random graphs, which
/// are generated on demand.
struct Seeds {
  struct Model {
    std::string name, bytes;
  };
  std::vector<Model> in_folders, networks;
  GenePool pool;
  /// else extents of inputs are numbers
  bool keeps_symbols = false;

  /// Reads `*/model.onnx` beneath the folders. Throws Error for a file that is not a model.
  explicit Seeds(const std::vector<std::string>& folders);
  Model pick(testing::Random& random) const;
};

}  // namespace tenon::testing
