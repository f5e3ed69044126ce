#pragma once

#include "testing/random.h"

#include <map>
#include <string>
#include <vector>

namespace onnx_schema {
class GraphProto;
class ModelProto;
}  // namespace onnx_schema

namespace tenon::testing {

/// Parts of the seed models, for insertion into others.
struct GenePool {
  std::vector<std::string> op_types;
  /// by operator, as messages
  std::map<std::string, std::vector<std::string>> attributes;
  /// by attribute
  std::map<std::string, std::vector<std::string>> words;
  void add(const onnx_schema::GraphProto& graph);
};

/// Mutates a model's structure: attributes, edges, nodes, shapes, types, ranks, initializers,
/// versions. The result need not be valid. Returns the changes, a line each.
std::vector<std::string> mutate(onnx_schema::ModelProto& model, const GenePool& pool,
                                testing::Random& random);

}  // namespace tenon::testing
