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

/// The network that `spec` names, with seeded weights that are only made when asked for:
/// "resnet50", "resnet50?batch=4,layout=NHWC", "mlp?batch=N" (N becomes a symbol). Throws a usage
/// Error for a network, parameter or value that does not exist, offering the nearest name.
Graph build(std::string_view spec);

}  // namespace tenon::zoo
