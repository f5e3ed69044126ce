#include "cli/show_program.h"

#include "base/error.h"
#include "base/text.h"
#include "program/checksum.h"
#include "program/totals.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace tenon::cli {
namespace {

constexpr std::size_t kMostBuffers = 20;

template <class T>
bool read(const std::vector<std::byte>& bytes, std::uint64_t at, T& value) {
  if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return true;
}

// Returns the size of each function in an object file; empty if it cannot be parsed.
std::map<std::string, std::uint64_t> function_bytes(const std::vector<std::byte>& code) {
  std::map<std::string, std::uint64_t> sizes;
  Elf64_Ehdr header{};
  if (!read(code, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return sizes;
  for (std::uint64_t k = 0; k < header.e_shnum; ++k) {
    Elf64_Shdr section{}, names{};
    if (!read(code, header.e_shoff + k * sizeof section, section) || section.sh_type != SHT_SYMTAB)
      continue;
    if (section.sh_link >= header.e_shnum ||
        !read(code, header.e_shoff + section.sh_link * sizeof names, names))
      continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      if (!read(code, section.sh_offset + at, symbol) || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
        continue;
      const std::uint64_t begin = names.sh_offset + symbol.st_name;
      if (begin >= code.size()) continue;
      const auto* text = reinterpret_cast<const char*>(code.data() + begin);
      sizes[std::string(text, strnlen(text, code.size() - begin))] = symbol.st_size;
    }
  }
  return sizes;
}

std::string text_of(const Extent& extent, const Program& program) {
  if (extent.is_number()) return std::to_string(extent.number());
  if (extent.steps().size() == 1)
    return program.symbols[static_cast<std::size_t>(extent.steps()[0].number)].name;
  return "?";
}

std::string type_text(const Program::Buffer& buffer, const Program& program) {
  std::vector<std::string> dims;
  for (const Extent& dim : buffer.dims) dims.push_back(text_of(dim, program));
  return concat(buffer.dtype, "[", join(dims, ", "), "]");
}

std::string place_text(Program::BufferKind place) {
  switch (place) {
    case Program::BufferKind::Input:
      return "input";
    case Program::BufferKind::Output:
      return "output";
    case Program::BufferKind::Constant:
      return "constant";
    case Program::BufferKind::Arena:
      break;
    case Program::BufferKind::Slot:
      return "slot";
    case Program::BufferKind::View:
      return "view";
  }
  return "arena";
}

std::uint64_t bytes_of(const Program::Buffer& buffer) {
  std::uint64_t bytes = buffer.element_bytes;
  for (const Extent& dim : buffer.dims) {
    if (!dim.is_number()) return 0;
    bytes *= static_cast<std::uint64_t>(dim.number());
  }
  return bytes;
}

// Returns the kind of a step that is not a kernel; bodies are the steps after it.
std::string kind_text(const Program& program, const Program::Step& step) {
  switch (step.kind) {
    case Program::StepKind::Host:
      return concat("operator ", program.operators[step.detail].op);
    case Program::StepKind::Branch:
      return concat("branch, bodies to ", program.branches[step.detail].then_end, " and ",
                    program.branches[step.detail].else_end);
    case Program::StepKind::Loop:
      return concat("loop, body to ", program.loops[step.detail].end);
    case Program::StepKind::Kernel:
      break;
  }
  return "kernel";
}

Page::Section steps_of(const Program& program, const std::string& heading) {
  const std::map<std::string, std::uint64_t> sizes = function_bytes(program.code);
  Page::Section section;
  section.heading = heading;
  section.columns = {">step", "name", "kernel", "candidate", ">items", ">flops", ">code bytes"};
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const Program::Step& step = program.steps[k];
    if (step.kind != Program::StepKind::Kernel) {
      section.rows.push_back(
          {std::to_string(k), step.name, kind_text(program, step), "-", "-", "-", "-"});
      continue;
    }
    const Program::Kernel& kernel = program.kernels[step.kernel];
    const auto size = sizes.find(kernel.symbol);
    section.rows.push_back({std::to_string(k), step.name, concat(step.kernel, ": ", kernel.name),
                            step.candidate, text_of(step.work, program),
                            step.flops > 0 ? format_count(step.flops) : "-",
                            size == sizes.end() ? "-" : std::to_string(size->second)});
  }
  return section;
}

// Skips constants that were folded into others: they have no stored data and no step uses them.
std::vector<const Program::Buffer*> used_buffers(const Program& program) {
  std::vector<bool> is_used(program.buffers.size(), false);
  const auto use = [&](const std::vector<std::uint32_t>& buffers) {
    for (const std::uint32_t id : buffers) is_used[id] = is_used[root_of(program, id)] = true;
  };
  use(program.inputs);
  use(program.outputs);
  for (const Program::Step& step : program.steps) use(buffers_of(program, step));
  std::vector<const Program::Buffer*> list;
  for (std::size_t k = 0; k < program.buffers.size(); ++k) {
    const Program::Buffer& buffer = program.buffers[k];
    const bool is_empty =
        buffer.name.empty() && std::ranges::any_of(buffer.dims, [](const Extent& dim) {
          return dim.is_number() && dim.number() == 0;
        });
    if ((is_used[k] || buffer.is_weight) && !is_empty) list.push_back(&buffer);
  }
  return list;
}

Page::Section buffer_table(const Program& program) {
  std::vector<const Program::Buffer*> list = used_buffers(program);
  std::ranges::stable_sort(list, std::greater<>(),
                           [](const auto* buffer) { return bytes_of(*buffer); });
  Page::Section section;
  section.heading = "buffers, the largest first";
  section.columns = {"name", "type", "place", ">bytes", ">offset", ">first step", ">last step"};
  for (const Program::Buffer* buffer : list) {
    if (section.rows.size() == kMostBuffers) break;
    const bool is_in_arena = buffer->place == Program::BufferKind::Arena;
    const std::uint64_t bytes = bytes_of(*buffer);
    section.rows.push_back({buffer->name, type_text(*buffer, program), place_text(buffer->place),
                            bytes > 0 ? std::to_string(bytes) : "-", std::to_string(buffer->offset),
                            is_in_arena ? std::to_string(buffer->first_step) : "-",
                            is_in_arena ? std::to_string(buffer->last_step) : "-"});
  }
  return section;
}

}  // namespace

Page describe_program(const Program& program, const std::string& name) {
  const ProgramTotals totals = totals_of(program);
  Page page;
  page.title =
      concat(name, ": a program for ", program.target.empty() ? "several targets" : program.target,
             ", ", totals.steps, " steps of ", totals.kernels, " kernels, ",
             format_bytes(totals.code_bytes), " of code, ", format_bytes(totals.constant_bytes),
             " of constants, ", format_bytes(totals.arena_bytes), " arena");
  Page::Section ports;
  ports.columns = {"", "name", "type"};
  for (const std::uint32_t id : program.inputs)
    ports.rows.push_back(
        {"input", program.buffers[id].name, type_text(program.buffers[id], program)});
  for (const std::uint32_t id : program.outputs)
    ports.rows.push_back(
        {"output", program.buffers[id].name, type_text(program.buffers[id], program)});
  for (const Program::Symbol& symbol : program.symbols)
    ports.rows.push_back({"symbol", symbol.name, concat(symbol.lo, " to ", symbol.hi)});
  for (const Program::Buffer& buffer : program.buffers) {
    if (buffer.is_weight) ports.rows.push_back({"weight", buffer.name, type_text(buffer, program)});
  }
  page.sections.push_back(std::move(ports));
  page.sections.push_back(steps_of(program, "steps"));
  page.sections.push_back(buffer_table(program));
  return page;
}

std::vector<std::string> problems_of(const Program& program) {
  std::vector<std::string> problems;
  const std::vector<std::uint64_t> sums =
      block_checksums({program.constants.get(), program.constant_bytes});
  for (std::size_t k = 0; k < sums.size() && k < program.constant_checksums.size(); ++k) {
    if (sums[k] == program.constant_checksums[k]) continue;
    problems.push_back(concat("altered constants: from byte ", k * kChecksumBlock, " of them on"));
  }
  return problems;
}

}  // namespace tenon::cli
