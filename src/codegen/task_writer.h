#pragma once

#include "codegen/compile.h"
#include "codegen/graph_scope.h"
#include "codegen/guards.h"
#include "codegen/nest_names.h"
#include "expr/analysis.h"
#include "nests/packing.h"
#include "nests/winograd_weights.h"
#include "tasks/task_list.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::codegen {

/// State shared by the model's graph and all bodies during selection.
struct SharedKernels {
  TaskList list;
  /// Empty unless the options record decisions.
  std::vector<Decision> decisions;
  /// By constant and form.
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> forms;
  /// By buffer: whether every kernel that reads it does so by lookup.
  std::map<std::uint32_t, bool> is_looked_up;
  /// By text.
  std::unordered_map<std::string, std::size_t> kernels;
  /// By memory and type.
  std::map<std::pair<const std::byte*, std::string>, std::uint32_t> constants;
  /// By signature; caches repeated blocks of a network.
  std::unordered_map<std::string, bool> has_kernel;
  std::size_t step_count = 0;

  bool may_be_kernel(const Graph& graph, NodeId node);
};

struct ChosenForNode;
/// Nests of a node signature, shared by equal nodes: networks repeat blocks.
struct NodeNests {
  std::vector<Expr> exprs;
  NestSequence sequence;
  Footprint footprint;
  /// The chosen CPU kernels, and their calls without buffers in the same order.
  const ChosenForNode* chosen = nullptr;
  std::vector<TaskList::Call> calls = {};
};

/// A graph or body whose tasks are written, and the list that they are written to.
struct TaskContext {
  const CompileOptions& options;
  SharedKernels& shared;
  GraphScope& scope;
  /// Upper bound of the node ids of the caller's graph.
  std::size_t original_bound = 0;
};

/// Writes the tasks of nodes that kernels compute. A target may have its own
/// (`Target::task_writer`).
class TaskWriter {
 public:
  explicit TaskWriter(const TaskContext& context)
      : graph_(context.scope.graph()),
        options_(context.options),
        target_(*context.options.target),
        shared_(context.shared),
        list_(context.shared.list),
        scope_(context.scope),
        original_bound_(context.original_bound) {}
  virtual ~TaskWriter() = default;
  TaskWriter(const TaskWriter&) = delete;
  TaskWriter& operator=(const TaskWriter&) = delete;

  /// Adds the tasks that compute a node if one of the guards holds.
  virtual void add_tasks(NodeId node, const std::vector<ValueId>& results, NodeNests& nests,
                         const std::vector<Guards>& guards) = 0;
  /// Adds a copy task without candidates. `call` has its buffers.
  virtual void add_copy(LoopNest nest, TaskList::Call call, TaskList::Task task) = 0;

 protected:
  /// By buffer of the nests.
  std::vector<bool> constants_among(const Node& node, const NestSequence& sequence) const;
  /// Returns the buffers of a node's nests: operands, results, derived constants and temporaries.
  std::vector<std::uint32_t> buffer_ids(const Node& node, const std::vector<ValueId>& results,
                                        const NestSequence& sequence,
                                        const std::vector<nests::WinogradWeights>& derived);
  /// Returns the buffer of a derived form of a constant; each form exists once.
  std::uint32_t form_of(std::uint32_t source, const nests::Packing& packing);
  std::uint32_t form_of(std::uint32_t source, const nests::WinogradWeights& weights);
  /// Returns the total size of a call's buffers; 0 if symbolic.
  double bytes_of(const TaskList::Call& call) const;
  /// Sets the run-time values of a call: symbolic extents and the number of work items.
  void set_numbers(TaskList::Call& call, const LoopNest& nest);
  /// Returns a task for a node without alternatives, with its names for reports and lookups.
  TaskList::Task task_of(NodeId node, const std::vector<ValueId>& results) const;
  /// Returns the name of a kernel of a node: "conv+relu", "conv+relu #2", "conv+relu pad".
  std::string kernel_name(NodeId node, const std::string& nest_name) const;
  /// Records for each buffer of a call whether the kernel accesses it by lookup.
  void note_lookups(const TaskList::Call& call);
  void note_lookups(const LoopNest& nest, const std::vector<std::uint32_t>& arguments);
  /// Records an access to the buffer: at data-dependent positions, or at all of them.
  void note_use(std::uint32_t buffer, bool is_lookup);
  /// Nests with equal text are one kernel, unless they use different alternatives.
  std::uint32_t add_kernel(LoopNest nest, const std::string& name,
                           std::string_view alternative = "");
  /// Returns the list's symbol that guards a version, if any.
  std::optional<std::size_t> guard_symbol(const Version& version);

  const Graph& graph_;
  const CompileOptions& options_;
  const Target& target_;
  SharedKernels& shared_;
  TaskList& list_;
  GraphScope& scope_;
  const std::size_t original_bound_;

 private:
  template <class How>
  std::uint32_t form_of(std::uint32_t source, const How& how, DType dtype, const Dims& dims);

  std::unordered_map<std::uint32_t, std::vector<bool>> lookups_;  // By kernel and argument.
};

/// Returns the display form of a nest's name within its node: "" for the first, " #2" for "_1", "
/// pad", " products".
std::string part_label(std::string_view nest_name);

/// Returns the index of a symbol in the list.
std::optional<std::size_t> symbol_number(const TaskList& list, const std::string& name);

}  // namespace tenon::codegen
