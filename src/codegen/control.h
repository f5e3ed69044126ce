#pragma once

#include "codegen/graph_scope.h"

#include <functional>
#include <optional>
#include <vector>

namespace tenon::codegen {

/// Request to append a body's tasks to the list.
struct BodyRequest {
  struct Input {
    /// The buffer it forwards; without a value it gets a slot of its own.
    std::optional<std::uint32_t> buffer;
    /// The same value under its own extents.
    std::optional<std::uint32_t> whole;
    /// The type of the argument, in symbols of the enclosing graph.
    Type type;
  };
  /// Destinations into which kernels may write an output directly.
  struct Output {
    /// This buffer.
    std::optional<std::uint32_t> into;
    /// A slice with the type of this input.
    std::optional<std::size_t> like;
    struct Slice {
      DType dtype = DType::F32;
      /// In the list's symbols.
      Dims dims;
    };
    std::optional<Slice> window;
  };
  const Graph* graph = nullptr;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
};
struct AddedBody {
  /// Buffers.
  std::vector<std::uint32_t> inputs, outputs;
  /// By output: written directly into the requested destination.
  std::vector<bool> is_direct;
};
using AddBody = std::function<AddedBody(GraphScope& around, const BodyRequest& request)>;

/// Adds a task that calls the node's host operator.
void add_host_task(GraphScope& scope, NodeId node);
/// Adds a task that calls a host operator by name.
void add_host_task(GraphScope& scope, std::string_view op, std::uint32_t operand,
                   std::uint32_t result);

/// Adds a task for a control-flow node, followed by those of its bodies. `writes_in_place`: kernels
/// of bodies may write the node's results directly.
void add_control_tasks(GraphScope& scope, NodeId node, bool writes_in_place,
                       const AddBody& add_body);

}  // namespace tenon::codegen
