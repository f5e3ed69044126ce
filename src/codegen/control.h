#pragma once

#include "codegen/graph_scope.h"

#include <functional>
#include <optional>
#include <vector>

namespace tenon::codegen {

/// How a body is to be added behind the list's last task.
struct BodyRequest {
  struct Input {
    /// that it is; nothing: a slot of its own
    std::optional<std::uint32_t> buffer;
    /// the same with its own extents
    std::optional<std::uint32_t> whole;
    /// what it is given, in symbols of the graph around it
    Type type;
  };
  /// Where kernels may leave an output at once, if they make it.
  struct Output {
    /// this buffer
    std::optional<std::uint32_t> into;
    /// a window as this input is one
    std::optional<std::size_t> like;
    struct Window {
      DType dtype = DType::F32;
      /// in the list's symbols
      Dims dims;
    };
    std::optional<Window> window;
  };
  const Graph* graph = nullptr;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
};
struct AddedBody {
  /// buffers
  std::vector<std::uint32_t> inputs, outputs;
  /// by output: it is where it was asked for
  std::vector<bool> is_direct;
};
using AddBody = std::function<AddedBody(GraphScope& around, const BodyRequest& request)>;

/// A task for a node that no kernel computes.
void add_host_task(GraphScope& scope, NodeId node);
/// One that calls an operator by its name on buffers.
void add_host_task(GraphScope& scope, std::string_view op, std::uint32_t operand,
                   std::uint32_t result);

/// A task for a node of control flow, and those of its bodies behind it. `writes_in_place`: kernels
/// of bodies may write what the node gives.
void add_control_tasks(GraphScope& scope, NodeId node, bool writes_in_place,
                       const AddBody& add_body);

}  // namespace tenon::codegen
