#pragma once

#include "ir/graph.h"

#include <string>
#include <string_view>
#include <vector>

namespace tenon::zoo {

struct Parameter {
  std::string name;
  std::string default_value;
  std::string summary;
};

/// A built-in network, for listing.
struct Network {
  std::string name;
  std::string summary;
  std::vector<Parameter> parameters;
};
const std::vector<Network>& networks();

/// Builds the network that `spec` names, with seeded weights that are generated on demand:
/// "resnet50", "resnet50?batch=4,layout=NHWC", "mlp?batch=N" (N becomes a symbol). Throws a usage
/// Error with the nearest name for an unknown network, parameter or value.
Graph build(std::string_view spec);

}  // namespace tenon::zoo
