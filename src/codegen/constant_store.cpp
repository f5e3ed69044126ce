#include "codegen/constant_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "nests/affine.h"
#include "nests/packing.h"

namespace tenon::codegen {
namespace {

constexpr std::uint64_t kAlignment = 64;

// The same text for the same order, whatever the numbers of its loops.
std::string form_text(const Packing& packing) {
  std::string text = concat("packed, limit ", packing.limit, ": ", Dims(packing.extents.begin(), packing.extents.end()),
                            " of ", packing.source_dims);
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
std::string form_text(const WinogradWeights& w) {
  return concat("winograd ", w.tile, ": ", w.outputs, " of ", w.channels, " from ", w.base, " by ", w.by_output, ", ", w.by_channel,
                ", ", w.by_row, ", ", w.by_column);
}

}  // namespace

void ConstantStore::add(std::uint32_t buffer, const Constant& value) {
  entries_.emplace(buffer, Entry{value, std::nullopt, std::nullopt});
}

const Constant& ConstantStore::value_of(std::uint32_t buffer) const {
  const auto found = entries_.find(buffer);
  TENON_ASSERT(found != entries_.end() && !found->second.packing && !found->second.winograd,
               "made from the constant itself");
  return found->second.value;
}

std::uint32_t ConstantStore::packed(std::uint32_t source, const Packing& packing) {
  const Constant& value = value_of(source);
  return form_of(source, form_text(packing), {value, packing, std::nullopt}, value.dtype(),
                 Dims(packing.extents.begin(), packing.extents.end()));
}

std::uint32_t ConstantStore::transformed(std::uint32_t source, const WinogradWeights& weights) {
  return form_of(source, form_text(weights), {value_of(source), std::nullopt, weights}, DType::F32, weights.dims());
}

std::uint32_t ConstantStore::form_of(std::uint32_t source, const std::string& form, Entry entry, DType dtype,
                                     const Dims& dims) {
  const auto made = static_cast<std::uint32_t>(program_.buffers.size());
  const auto [known, is_new] = forms_.try_emplace({source, form}, made);
  if (!is_new) return known->second;
  Program::Buffer buffer;
  buffer.name = program_.buffers[source].name;
  buffer.dtype = to_string(dtype);
  buffer.element_bytes = static_cast<std::uint32_t>(info(dtype).storage_bytes);
  for (const Dim& dim : dims) buffer.dims.emplace_back(dim.constant());
  buffer.place = Program::Place::Constant;
  program_.buffers.push_back(std::move(buffer));
  entries_.emplace(made, std::move(entry));
  return made;
}

void ConstantStore::note_use(std::uint32_t buffer, bool is_lookup) {
  bool& all = is_looked_up_.try_emplace(buffer, true).first->second;
  all = all && is_lookup;
}

void ConstantStore::place() {
  std::vector<bool> is_used(program_.buffers.size(), false);
  for (const Program::Step& step : program_.steps) {
    step.for_each_call([&](const Program::Call& call) {
      for (const std::uint32_t buffer : call.buffers) is_used[buffer] = true;
    });
  }
  std::erase_if(entries_, [&](const auto& entry) { return !is_used[entry.first]; });
  std::uint64_t bytes = 0;
  for (const auto& [id, entry] : entries_) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    Program::Buffer& buffer = program_.buffers[id];
    buffer.offset = bytes;
    buffer.is_looked_up = is_looked_up_.at(id);
    std::uint64_t size = buffer.element_bytes;
    for (const Extent& dim : buffer.dims) size *= static_cast<std::uint64_t>(dim.number());
    bytes += size;
  }
  program_.constant_bytes = bytes;
  if (bytes == 0) return;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw no_memory();
  madvise(mapped, bytes, MADV_HUGEPAGE);  // faster to fill, and to read in every run
  auto* data = static_cast<std::byte*>(mapped);
  program_.constants = std::shared_ptr<const std::byte>(
      data, [bytes](const std::byte* p) { munmap(const_cast<std::byte*>(p), bytes); });  // NOLINT
  for (const auto& [id, entry] : entries_) write(id, entry, data + program_.buffers[id].offset);
}

void ConstantStore::write(std::uint32_t buffer, const Entry& entry, std::byte* target) const {
  const Tensor tensor = [&] {
    try {
      return entry.value.materialise();
    } catch (Error& error) {
      throw error.at("constant '", program_.buffers[buffer].name, "'");
    }
  }();
  if (entry.packing) {
    pack(*entry.packing, tensor, target);
  } else if (entry.winograd) {
    const Tensor wide = tensor.converted(DType::F32);
    transform_weights(*entry.winograd, wide.as<float>().data(), reinterpret_cast<float*>(target));
  } else {
    std::memcpy(target, tensor.bytes().data(), tensor.byte_size());
  }
}

Error ConstantStore::no_memory() const {
  std::uint64_t largest_bytes = 0, end = program_.constant_bytes;
  std::string largest;
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    const Program::Buffer& buffer = program_.buffers[entry->first];
    if (end - buffer.offset > largest_bytes) {
      largest_bytes = end - buffer.offset;
      largest = buffer.name;
    }
    end = buffer.offset;
  }
  return Error("no memory for the packed constants", ErrorKind::OutOfMemory)
      .at("constant '", largest, "', the largest: ", format_bytes(largest_bytes))
      .got(format_bytes(program_.constant_bytes), " wanted for ", entries_.size());
}

}  // namespace tenon::codegen
