#include "codegen/task_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/node_label.h"
#include "expr/signature.h"
#include "nests/affine.h"
#include "nests/index_map.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

// Key of a packed layout, independent of loop ids.
std::string form_text(const nests::Packing& packing) {
  std::string text =
      concat("packed, limit ", packing.limit, ": ",
             Dims(packing.extents.begin(), packing.extents.end()), " of ", packing.source_dims);
  for (const Scalar& coordinate : packing.coordinates) {
    const auto line = affine_of(coordinate);
    TENON_ASSERT(line, "what is packed is read evenly");
    text += concat("; ", line->start);
    for (std::size_t k = 0; k < packing.loops.size(); ++k) {
      const auto step = line->steps.find(packing.loops[k]);
      if (step != line->steps.end()) text += concat(" + ", step->second, " * ", k);
    }
  }
  return text;
}
std::string form_text(const nests::WinogradWeights& w) {
  return concat("winograd ", w.tile, ": ", w.outputs, " of ", w.channels, " from ", w.base, " by ",
                w.by_output, ", ", w.by_channel, ", ", w.by_row, ", ", w.by_column, " in ",
                w.columns);
}

}  // namespace

std::string part_label(std::string_view nest_name) {
  std::string label;
  while (!nest_name.empty()) {
    const std::size_t digits_end =
        nest_name.front() == '_' ? nest_name.find_first_not_of("0123456789", 1) : 0;
    const std::string_view number =
        nest_name.substr(0, std::min(digits_end, nest_name.size()));  // "_1" is the second nest.
    if (number.size() > 1) {
      label += concat(" #", parse_integer(number.substr(1)).value_or(0) + 1);
      nest_name.remove_prefix(number.size());
      continue;
    }
    if (nest_name.front() == '_') nest_name.remove_prefix(1);
    const std::string_view word = nest_name.substr(0, nest_name.find('_'));
    label += concat(" ", word);
    nest_name.remove_prefix(word.size());
  }
  return label;
}

bool SharedKernels::may_be_kernel(const Graph& graph, NodeId node) {
  std::string signature = signature_of(graph, node);
  if (signature.empty()) return kernel_refusal(graph, node).empty();
  const auto [known, is_new] = has_kernel.try_emplace(std::move(signature), false);
  if (is_new) known->second = kernel_refusal(graph, node).empty();
  return known->second;
}

std::optional<std::size_t> symbol_number(const TaskList& list, const std::string& name) {
  const auto found = std::ranges::find(list.symbols, name, &TaskList::Symbol::name);
  if (found == list.symbols.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list.symbols.begin());
}

std::vector<bool> TaskWriter::constants_among(const Node& node,
                                              const NestSequence& sequence) const {
  std::vector<bool> is_constant;
  for (const NestSequence::Buffer& buffer : sequence.buffers) {
    is_constant.push_back(
        buffer.role == NestSequence::BufferRole::Operand &&
        list_.buffers[scope_.buffers.at(node.operands.at(buffer.index))].lifetime ==
            Lifetime::Constant);
  }
  return is_constant;
}

std::vector<std::uint32_t> TaskWriter::buffer_ids(
    const Node& node, const std::vector<ValueId>& results, const NestSequence& sequence,
    const std::vector<nests::WinogradWeights>& derived) {
  std::vector<std::uint32_t> ids;
  for (const NestSequence::Buffer& buffer : sequence.buffers) {
    switch (buffer.role) {
      case NestSequence::BufferRole::Operand:
        ids.push_back(scope_.buffers.at(node.operands.at(buffer.index)));
        break;
      case NestSequence::BufferRole::Result:
        ids.push_back(scope_.buffers.at(results.at(buffer.index)));
        break;
      case NestSequence::BufferRole::Derived: {
        const nests::WinogradWeights& weights = derived.at(buffer.index);
        ids.push_back(form_of(ids[weights.source], weights));
        break;
      }
      case NestSequence::BufferRole::Temporary:
        // Unused if the temporary is scratch of a nest.
        ids.push_back(scope_.add_buffer("", buffer.dtype, buffer.dims, Lifetime::Value));
        break;
    }
  }
  return ids;
}

template <class How>
std::uint32_t TaskWriter::form_of(std::uint32_t source, const How& how, DType dtype,
                                  const Dims& dims) {
  TENON_ASSERT(list_.constants.contains(source), "made from the constant itself");
  const std::string text = form_text(how);
  const auto [known, is_new] =
      shared_.forms.try_emplace({source, text}, static_cast<std::uint32_t>(list_.buffers.size()));
  if (!is_new) return known->second;
  const std::uint32_t made =
      scope_.add_buffer(list_.buffers[source].name, dtype, dims, Lifetime::Constant);
  list_.buffers[made].form = TaskList::Form{source, text, how};
  return made;
}

std::uint32_t TaskWriter::form_of(std::uint32_t source, const nests::Packing& packing) {
  const Dims dims(packing.extents.begin(), packing.extents.end());
  return form_of(source, packing, list_.buffers[source].dtype, dims);
}

std::uint32_t TaskWriter::form_of(std::uint32_t source, const nests::WinogradWeights& weights) {
  return form_of(source, weights, DType::F32, weights.dims());
}

double TaskWriter::bytes_of(const TaskList::Call& call) const {
  double bytes = 0;
  for (const std::uint32_t id : call.buffers) {
    const Dim count = product(list_.buffers[id].dims);
    if (!count.is_constant()) return 0;
    bytes += static_cast<double>(info(list_.buffers[id].dtype).storage_bytes) *
             static_cast<double>(count.constant());
  }
  return bytes;
}

void TaskWriter::set_numbers(TaskList::Call& call, const LoopNest& nest) {
  call.extents = scope_.in_list(nest.extents);
  call.work = scope_.in_list(work_items(nest));
}

TaskList::Task TaskWriter::task_of(NodeId id, const std::vector<ValueId>& results) const {
  TaskList::Task task;
  task.name = node_label(graph_, id);
  task.value = graph_.value(results.front()).name;
  return task;
}

std::string TaskWriter::kernel_name(NodeId node, const std::string& nest_name) const {
  return op_label(graph_, node) + part_label(nest_name);
}

void TaskWriter::note_lookups(const TaskList::Call& call) {
  const auto [known, is_new] = lookups_.try_emplace(call.kernel);
  if (is_new) {
    const LoopNest& nest = list_.kernels[call.kernel].nest;
    const std::vector<bool> is_looked_up = looked_up(nest);
    for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
      if (nest.buffers[k].storage != StorageClass::Scratch)
        known->second.push_back(is_looked_up[k]);
    }
  }
  for (std::size_t k = 0; k < call.buffers.size(); ++k) note_use(call.buffers[k], known->second[k]);
}

void TaskWriter::note_lookups(const LoopNest& nest, const std::vector<std::uint32_t>& arguments) {
  const std::vector<bool> is_looked_up = looked_up(nest);
  std::size_t given = 0;
  for (std::size_t k = 0; k < nest.buffers.size(); ++k) {
    if (nest.buffers[k].storage == StorageClass::Scratch) continue;
    note_use(arguments[given++], is_looked_up[k]);
  }
}

void TaskWriter::note_use(std::uint32_t buffer, bool is_lookup) {
  bool& all = shared_.is_looked_up.try_emplace(buffer, true).first->second;
  all = all && is_lookup && list_.buffers[buffer].lifetime == Lifetime::Constant;
}

std::optional<std::size_t> TaskWriter::guard_symbol(const Version& version) {
  const auto name = scope_.in_list(Dim::symbol(version.symbol)).symbol_name();
  return name ? symbol_number(list_, *name) : std::nullopt;
}

std::uint32_t TaskWriter::add_kernel(LoopNest nest, const std::string& name,
                                     std::string_view alternative) {
  nest.name.clear();
  // Scratch sizes use the list's symbols, which may differ between equal nests.
  const Dim scratch = scope_.in_list(scratch_bytes(nest));
  const std::string text =
      concat(to_string(nest), scratch.is_constant() ? "" : to_string(scratch), alternative);
  const auto [found, is_new] = shared_.kernels.try_emplace(text, list_.kernels.size());
  if (is_new) {
    nest.name = concat("k", list_.kernels.size());
    list_.kernels.push_back({name, std::move(nest), scratch});
  }
  return static_cast<std::uint32_t>(found->second);
}

}  // namespace tenon::codegen
