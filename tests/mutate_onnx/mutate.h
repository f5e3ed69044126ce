#pragma once

#include "driver/random.h"

#include <map>
#include <string>
#include <vector>

namespace onnx_schema {
class GraphProto;
class ModelProto;
}  // namespace onnx_schema

namespace tenon::testing {

/// What the models that mutants are made of hold, to be put into others.
struct GenePool {
  std::vector<std::string> op_types;
  /// by operator, as messages
  std::map<std::string, std::vector<std::string>> attributes;
  /// by attribute
  std::map<std::string, std::vector<std::string>> words;
  void add(const onnx_schema::GraphProto& graph);
};

/// Changes a model's structure: attributes, edges, nodes, shapes, types, ranks, initializers,
/// versions. What comes out may make sense or not. Gives what was changed, a line for each.
std::vector<std::string> mutate(onnx_schema::ModelProto& model, const GenePool& pool,
                                Random& random);

}  // namespace tenon::testing
