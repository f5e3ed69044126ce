#pragma once

#include "codegen/graph_scope.h"

#include <functional>
#include <optional>
#include <vector>

namespace tenon::codegen {

/// How a body is to be added behind the list's last task.
struct BodyRequest {
  struct Input {
    std::optional<std::uint32_t> buffer;  ///< that it is; nothing: a slot of its own
    std::optional<std::uint32_t> whole;   ///< the same with its own extents
    Type type;                            ///< what it is given, in symbols of the graph around it
  };
  /// Where kernels may leave an output at once, if they make it.
  struct Output {
    std::optional<std::uint32_t> into;  ///< this buffer
    std::optional<std::size_t> like;    ///< a window as this input is one
    struct Window {
      DType dtype = DType::F32;
      Dims dims;  ///< in the list's symbols
    };
    std::optional<Window> window;
  };
  const Graph* graph = nullptr;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
};
struct AddedBody {
  std::vector<std::uint32_t> inputs, outputs;  ///< buffers
  std::vector<bool> is_direct;                 ///< by output: it is where it was asked for
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
