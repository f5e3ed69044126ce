#pragma once

#include "codegen/compile.h"
#include "codegen/graph_scope.h"
#include "codegen/guards.h"
#include "codegen/nest_names.h"
#include "nests/packing.h"
#include "nests/winograd_weights.h"
#include "ops/analysis.h"
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

/// What graphs, the model's and those of bodies, share in one list.
struct SharedKernels {
  TaskList list;
  /// by constant and form
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> forms;
  /// by buffer: by every kernel that reads it
  std::map<std::uint32_t, bool> is_looked_up;
  /// by text
  std::unordered_map<std::string, std::size_t> kernels;
  /// by memory and type
  std::map<std::pair<const std::byte*, std::string>, std::uint32_t> constants;
  /// by signature: networks repeat themselves
  std::unordered_map<std::string, bool> has_kernel;
  std::size_t step_count = 0;

  bool may_be_kernel(const Graph& graph, NodeId node);
};

struct ChosenForNode;
/// What is known of nodes that compute the same of operands of the same kind: networks repeat
/// themselves.
struct NodeNests {
  std::vector<Expr> exprs;
  NestSequence sequence;
  Footprint footprint;
  /// The processor's kernels, and their calls without buffers in the same order, once chosen.
  const ChosenForNode* chosen = nullptr;
  std::vector<TaskList::Call> calls = {};
};

/// Writes the tasks of nodes that kernels compute, as the processor or a device wants them.
class TaskWriter {
 public:
  TaskWriter(const CompileOptions& options, SharedKernels& shared, GraphScope& scope)
      : graph_(scope.graph()),
        options_(options),
        shared_(shared),
        list_(shared.list),
        scope_(scope) {}
  virtual ~TaskWriter() = default;
  TaskWriter(const TaskWriter&) = delete;
  TaskWriter& operator=(const TaskWriter&) = delete;

  /// What computes a node, for the values of symbols that one of the guards asks for.
  virtual void add_tasks(NodeId node, const std::vector<ValueId>& results, NodeNests& nests,
                         const std::vector<Guards>& guards) = 0;
  /// A task that copies: nothing is to be chosen. `call` has its buffers.
  virtual void add_copy(LoopNest nest, TaskList::Call call, TaskList::Task task) = 0;

 protected:
  /// By buffer of the nests.
  std::vector<bool> constants_among(const Node& node, const NestSequence& sequence) const;
  /// Of a node's nests: its operands and results, forms of its constants, and what lies between the
  /// nests.
  std::vector<std::uint32_t> buffer_ids(const Node& node, const std::vector<ValueId>& results,
                                        const NestSequence& sequence,
                                        const std::vector<nests::WinogradWeights>& derived);
  /// The buffer that holds a constant in another form: each form of each is there once.
  std::uint32_t form_of(std::uint32_t source, const nests::Packing& packing);
  std::uint32_t form_of(std::uint32_t source, const nests::WinogradWeights& weights);
  /// What a call's buffers hold; 0 where symbols decide.
  double bytes_of(const TaskList::Call& call) const;
  /// What the run is to tell the kernel: extents that are no numbers, and how much there is to do.
  void set_numbers(TaskList::Call& call, const LoopNest& nest);
  /// A task of a node, without ways: its names, for users and for whoever looks the node up.
  TaskList::Task task_of(NodeId node, const std::vector<ValueId>& results) const;
  /// A kernel that computes a part of a node: "conv+relu", "conv+relu #2", "conv+relu pad".
  std::string kernel_name(NodeId node, const std::string& nest_name) const;
  /// A kernel's buffers are looked up or not, whoever calls it.
  void note_lookups(const TaskList::Call& call);
  void note_lookups(const LoopNest& nest, const std::vector<std::uint32_t>& arguments);
  /// A kernel reads the buffer, at places that data decides or at all of them.
  void note_use(std::uint32_t buffer, bool is_lookup);
  /// Nests that read the same but for their names are one kernel, unless they are computed in other
  /// ways.
  std::uint32_t add_kernel(LoopNest nest, const std::string& name, std::string_view way = "");
  /// The symbol of the list that a version asks about, if it is one.
  std::optional<std::size_t> guard_symbol(const Version& version);

  const Graph& graph_;
  const CompileOptions& options_;
  SharedKernels& shared_;
  TaskList& list_;
  GraphScope& scope_;

 private:
  template <class How>
  std::uint32_t form_of(std::uint32_t source, const How& how, DType dtype, const Dims& dims);

  std::unordered_map<std::uint32_t, std::vector<bool>> lookups_;  // by kernel, for its arguments
};

/// What users read for the name of a nest among those of a node: "" of the first, " #2" of "_1",
/// " pad", " products".
std::string part_label(std::string_view nest_name);

/// The number of a symbol of the list.
std::optional<std::size_t> symbol_number(const TaskList& list, const std::string& name);

}  // namespace tenon::codegen
