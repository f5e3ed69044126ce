#include "program/verify.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "program/arena.h"
#include "program/routine_check.h"

namespace tenon {
namespace {

constexpr std::uint32_t kMaxElementBytes = 16;

Error broken(std::string_view what, const std::string& where) {
  return Error("the program does not hold together").at(where).got(what).hint("compile the model again");
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  // What a program made of parts says of itself; values that are no tensors have elements of no bytes.
  void run_ports() const {
    check_ports(program_.inputs, Program::Place::Input, "input");
    check_ports(program_.outputs, Program::Place::Output, "output");
    for (const Program::Symbol& symbol : program_.symbols) check_symbol(symbol);
    for (const ShapeCheck& check : program_.checks) {
      check_symbols(check.a, check.where);
      check_symbols(check.b, check.where);
    }
    for (const Program::Buffer& buffer : program_.buffers) bytes_of(buffer);
  }

  void run() const {
    run_ports();
    for (const Program::Kernel& kernel : program_.kernels) {
      check_extent(kernel.scratch_bytes, concat("kernel '", kernel.name, "'"));
    }
    std::vector<const Program::Call*> first_of_kernel(program_.kernels.size(), nullptr);
    for (std::size_t k = 0; k < program_.steps.size(); ++k) check_step(k, first_of_kernel);
    // What no step uses has no room anywhere: constants that were packed, what a kernel keeps to itself.
    std::vector<bool> is_used(program_.buffers.size(), false);
    for (const Program::Step& step : program_.steps) {
      for (const std::uint32_t id : step.buffers) is_used[id] = true;
    }
    for (std::size_t k = 0; k < is_used.size(); ++k) {
      if (is_used[k]) check_buffer(program_.buffers[k]);
    }
  }

 private:
  static std::string place_of(const Program::Buffer& buffer) { return concat("buffer '", buffer.name, "'"); }

  void check_symbols(const Extent& extent, const std::string& where) const {
    for (const Extent::Step& step : extent.steps()) {
      if (step.op == Extent::Op::Symbol && static_cast<std::uint64_t>(step.number) >= program_.symbols.size()) {
        throw broken("a symbol that there is not", where);
      }
    }
  }
  // Where symbols decide, a run checks it as it computes the number.
  void check_extent(const Extent& extent, const std::string& where) const {
    check_symbols(extent, where);
    if (extent.is_number() && extent.number() < 0) throw broken("a negative extent", where);
  }

  void check_symbol(const Program::Symbol& symbol) const {
    const std::string where = concat("extent '", symbol.name, "'");
    if (symbol.lo < 0 || symbol.lo > symbol.hi) throw broken("a range that has no number", where);
    if (symbol.input >= program_.inputs.size() ||
        symbol.axis >= program_.buffers[program_.inputs[symbol.input]].dims.size()) {
      throw broken("it is read from no input", where);
    }
  }

  void check_ports(const std::vector<std::uint32_t>& ports, Program::Place place, std::string_view kind) const {
    for (std::size_t k = 0; k < ports.size(); ++k) {
      const std::string where = concat(kind, " ", k);
      if (ports[k] >= program_.buffers.size()) throw broken("a buffer that there is not", where);
      const Program::Buffer& buffer = program_.buffers[ports[k]];
      if (buffer.place != place || buffer.offset != k) throw broken("a buffer of another kind", where);
    }
  }

  // Nothing where symbols decide.
  std::optional<std::uint64_t> bytes_of(const Program::Buffer& buffer) const {
    std::uint64_t bytes = buffer.element_bytes;
    bool is_fixed = true;
    for (const Extent& dim : buffer.dims) {
      check_extent(dim, place_of(buffer));
      is_fixed = is_fixed && dim.is_number();
    }
    if (!is_fixed) return std::nullopt;
    const bool is_empty = std::ranges::any_of(buffer.dims, [](const Extent& dim) { return dim.number() == 0; });
    if (is_empty) return 0;
    for (const Extent& dim : buffer.dims) {
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim.number()), &bytes)) {
        throw broken("more bytes than can be counted", place_of(buffer));
      }
    }
    return bytes;
  }

  void check_buffer(const Program::Buffer& buffer) const {
    if (buffer.element_bytes == 0 || buffer.element_bytes > kMaxElementBytes) {
      throw broken(concat("elements of ", buffer.element_bytes, " bytes"), place_of(buffer));
    }
    const std::optional<std::uint64_t> bytes = bytes_of(buffer);
    const auto require_inside = [&](std::uint64_t whole, std::string_view what) {
      if (!bytes) throw broken(concat("its extents vary, though it lies in the ", what), place_of(buffer));
      if (buffer.offset % kArenaAlignment != 0) throw broken("it is not aligned", place_of(buffer));
      if (buffer.offset > whole || *bytes > whole - buffer.offset) {
        throw broken(concat("it ends outside the ", what), place_of(buffer));
      }
    };
    switch (buffer.place) {
      case Program::Place::Input: require_port(buffer, program_.inputs); break;
      case Program::Place::Output: require_port(buffer, program_.outputs); break;
      case Program::Place::Constant: require_inside(program_.constant_bytes, "constants"); break;
      case Program::Place::Arena:
        if (program_.is_arena_planned) require_inside(program_.arena_bytes, "arena");
        break;
      default: throw broken("it lies nowhere", place_of(buffer));
    }
  }

  void require_port(const Program::Buffer& buffer, const std::vector<std::uint32_t>& ports) const {
    if (buffer.offset >= ports.size()) throw broken("it belongs to no input or output", place_of(buffer));
  }

  void check_step(std::size_t index, std::vector<const Program::Call*>& first_of_kernel) const {
    const Program::Step& step = program_.steps[index];
    const std::string where = concat("step ", index, " ('", step.name, "')");
    for (const Program::Guard& guard : step.when) {
      if (guard.symbol >= program_.symbols.size()) throw broken("a symbol that there is not", where);
    }
    check_call(step, index, where, first_of_kernel);
  }

  void check_call(const Program::Call& call, std::size_t index, const std::string& where,
                  std::vector<const Program::Call*>& first_of_kernel) const {
    if (call.kernel >= program_.kernels.size()) throw broken("a kernel that there is not", where);
    check_extent(call.work, where);
    for (const Extent& extent : call.extents) check_symbols(extent, where);
    for (const std::uint32_t id : call.buffers) {
      if (id >= program_.buffers.size()) throw broken("a buffer that there is not", where);
      const Program::Buffer& buffer = program_.buffers[id];
      const bool is_alive = index >= buffer.first_step && index <= buffer.last_step;
      if (buffer.place == Program::Place::Arena && !is_alive) {
        throw broken(concat("it uses ", place_of(buffer), ", which is not alive then"), where);
      }
    }
    // How many of each a kernel reads stands only in its code; its calls at least agree.
    const Program::Call*& first = first_of_kernel[call.kernel];
    if (first == nullptr) first = &call;
    if (first->buffers.size() != call.buffers.size() || first->extents.size() != call.extents.size()) {
      throw broken("other operands than its kernel has elsewhere", where);
    }
  }

  const Program& program_;
};

}  // namespace

void verify(const Program& program) {
  if (program.is_composed() || !program.parts.empty()) {
    Verifier(program).run_ports();
    require_routine(program);
    for (const Program& part : program.parts) Verifier(part).run();
  } else {
    Verifier(program).run();
  }
}

}  // namespace tenon
