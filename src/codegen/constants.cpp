#include "codegen/constants.h"

#include "base/error.h"
#include "base/text.h"

#include <sys/mman.h>

#include <cstring>
#include <vector>

namespace tenon::codegen {
namespace {

constexpr std::uint64_t kAlignment = 64;

void write(const TaskList& tasks, std::uint32_t id, std::byte* target) {
  const TaskList::Buffer& buffer = tasks.buffers[id];
  const std::uint32_t source = buffer.form ? buffer.form->source : id;
  const Tensor tensor = [&] {
    try {
      return tasks.constants.at(source).materialise();
    } catch (Error& error) {
      throw error.at("constant '", buffer.name, "'");
    }
  }();
  if (!buffer.form) {
    std::memcpy(target, tensor.bytes().data(), tensor.byte_size());
  } else if (const auto* packing = std::get_if<nests::Packing>(&buffer.form->how)) {
    pack(*packing, tensor, target);
  } else {
    const auto* weights = std::get_if<nests::WinogradWeights>(&buffer.form->how);
    TENON_ASSERT(weights != nullptr, "a form says how it is made");
    const Tensor wide = tensor.converted(DType::F32);
    transform_weights(*weights, wide.as<float>().data(), reinterpret_cast<float*>(target));
  }
}

Error no_memory(const Program& program, const std::vector<std::uint32_t>& used) {
  std::uint64_t largest_bytes = 0, end = program.constant_bytes;
  std::string largest;
  for (auto id = used.rbegin(); id != used.rend(); ++id) {
    const Program::Buffer& buffer = program.buffers[*id];
    if (end - buffer.offset > largest_bytes) {
      largest_bytes = end - buffer.offset;
      largest = buffer.name;
    }
    end = buffer.offset;
  }
  return Error("no memory for the packed constants", ErrorKind::OutOfMemory)
      .at("constant '", largest, "', the largest: ", format_bytes(largest_bytes))
      .got(format_bytes(program.constant_bytes), " wanted for ", used.size());
}

}  // namespace

void place_constants(const TaskList& tasks, Program& program) {
  std::vector<bool> is_used(program.buffers.size(), false);
  for (const Program::Step& step : program.steps) {
    for (const std::uint32_t buffer : step.buffers) is_used[root_of(program, buffer)] = true;
  }
  for (const std::uint32_t output : program.outputs) is_used[root_of(program, output)] = true;
  for (const Program::State& state : program.states) {
    if (state.initial != kNoBuffer) is_used[state.initial] = true;
  }
  std::vector<std::uint32_t> used;
  std::uint64_t bytes = 0;
  for (std::uint32_t id = 0; id < program.buffers.size(); ++id) {
    if (!is_used[id] || program.buffers[id].place != Program::BufferKind::Constant) continue;
    used.push_back(id);
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Program::Buffer& buffer = program.buffers[id];
    buffer.offset = bytes;
    buffer.is_looked_up = tasks.buffers[id].is_looked_up;
    std::uint64_t size = buffer.element_bytes;
    for (const Extent& dim : buffer.dims) size *= static_cast<std::uint64_t>(dim.number());
    bytes += size;
  }
  program.constant_bytes = bytes;
  if (bytes == 0) return;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw no_memory(program, used);
  madvise(mapped, bytes, MADV_HUGEPAGE);  // Huge pages speed up filling and reading.
  auto* data = static_cast<std::byte*>(mapped);
  program.constants = std::shared_ptr<const std::byte>(
      data, [bytes](const std::byte* p) { munmap(const_cast<std::byte*>(p), bytes); });  // NOLINT
  for (const std::uint32_t id : used) write(tasks, id, data + program.buffers[id].offset);
}

}  // namespace tenon::codegen
