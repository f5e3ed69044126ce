#include "models/weights.h"

#include "base/error.h"
#include "base/text.h"
#include "program/verify.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace tenon::models {
namespace {

constexpr std::uint64_t kWeightAlignment = 64;

bool is_weight(const Constant& constant) {
  return is_float(constant.dtype()) && !constant.shape().empty();
}

std::shared_ptr<std::byte> pages(std::uint64_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error("no memory for the weights", ErrorKind::OutOfMemory).got(format_bytes(bytes));
  }
  return {static_cast<std::byte*>(mapped), [bytes](std::byte* data) { munmap(data, bytes); }};
}

}  // namespace

OpenWeights open_weights(Graph graph, const std::vector<std::string>& names) {
  std::vector<ValueId> found;
  std::vector<std::string> known;
  for (const NodeId node : graph.nodes_in_order()) {
    if (graph.node(node).results.size() != 1 || !graph.node(node).results[0]) continue;
    const ValueId value = graph.node(node).results[0];
    const Constant* constant = graph.constant_of(value);
    if (constant == nullptr) continue;
    known.push_back(graph.value(value).name);
    const bool is_named = std::ranges::find(names, known.back()) != names.end();
    if (names.empty() ? is_weight(*constant) : is_named) found.push_back(value);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw Error(concat("no constant of the model is called '", name, "'"), ErrorKind::Usage)
        .hint(suggest_name(name, known));
  }
  OpenWeights opened;
  for (const ValueId value : found) {
    const std::string name = graph.value(value).name;
    opened.weights.emplace_back(name, *graph.constant_of(value));
    const Type type = graph.value(value).type;
    const ValueId input = graph.add_input(graph.free_name(name), type);
    graph.replace_uses(value, input);
  }
  opened.graph = std::move(graph);
  return opened;
}

Program close_weights(Program program, const OpenWeights& opened) {
  if (opened.weights.empty()) return program;
  if (!program.is_kernel_only()) {
    throw Error("weights of a program with operators that are no kernels cannot be swapped",
                ErrorKind::Unsupported)
        .got(program.operators.size() + program.branches.size() + program.loops.size(),
             " such steps")
        .hint("compile it without swappable weights");
  }
  const std::size_t first = program.inputs.size() - opened.weights.size();
  // Appended to the existing constants.
  std::vector<std::uint64_t> offsets;
  std::uint64_t bytes = program.constant_bytes;
  for (const auto& [name, constant] : opened.weights) {
    bytes = (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
    offsets.push_back(bytes);
    bytes += static_cast<std::uint64_t>(constant.size()) * info(constant.dtype()).storage_bytes;
  }
  const std::shared_ptr<std::byte> constants = pages(bytes);
  if (program.constant_bytes > 0)
    std::memcpy(constants.get(), program.constants.get(), program.constant_bytes);
  for (std::size_t k = 0; k < opened.weights.size(); ++k) {
    const auto& [name, constant] = opened.weights[k];
    const Tensor elements = constant.materialise();
    std::memcpy(constants.get() + offsets[k], elements.bytes().data(), elements.byte_size());
    Program::Buffer& buffer = program.buffers[program.inputs[first + k]];
    buffer.name = name;
    buffer.place = Program::BufferKind::Constant;
    buffer.offset = offsets[k];
    buffer.is_weight = true;
  }
  program.inputs.resize(first);
  program.constants = constants;
  program.constant_bytes = bytes;
  verify(program);
  return program;
}

}  // namespace tenon::models
