#include "program/verify.h"

#include "base/error.h"
#include "program/arena.h"
#include "program/in_place.h"

#include <algorithm>
#include <optional>
#include <span>

namespace tenon::inline program {
namespace {

constexpr std::uint32_t kMaxElementBytes = 16;
constexpr int kMaxDepth = 64;  // nesting depth of bodies: beyond any model, but safe for the stack

using BufferKind = Program::BufferKind;
using Kind = Program::StepKind;

Error broken(std::string_view what, const std::string& where) {
  return Error("the program does not hold together")
      .at(where)
      .got(what)
      .hint("compile the model again");
}

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const Program& program) : program_(program) {}

  void run() {
    check_views();
    check_ports();
    for (const Program::Symbol& symbol : program_.symbols) check_symbol(symbol);
    for (const ShapeCheck& check : program_.checks) {
      check_symbols(check.a, check.where);
      check_symbols(check.b, check.where);
    }
    for (const Program::Buffer& buffer : program_.buffers) bytes_of(buffer);
    for (const Program::Kernel& kernel : program_.kernels) {
      const std::string where = concat("kernel '", kernel.name, "'");
      check_extent(kernel.scratch_bytes, where);
      for (const Program::TensorMap& map : kernel.maps) check_map(map, where);
      if (kernel.cluster > 8) throw broken("a cluster of no size that there is", where);
    }
    check_states();
    first_of_kernel_.resize(program_.kernels.size(), nullptr);
    is_set_.resize(program_.buffers.size(), false);
    for (const std::uint32_t input : program_.inputs) is_set_[input] = true;
    check_steps(0, static_cast<std::uint32_t>(program_.steps.size()), 0);
    for (const std::uint32_t output : program_.outputs)
      require_set(output, "the program's outputs");
    // Buffers that no step uses have no memory: constants that were packed, kernel-internal values.
    std::vector<bool> is_used(program_.buffers.size(), false);
    for (const Program::Step& step : program_.steps) {
      for (const std::uint32_t id : step.buffers) is_used[root_of(program_, id)] = true;
    }
    for (const std::uint32_t output : program_.outputs) is_used[root_of(program_, output)] = true;
    for (const Program::State& state : program_.states) {
      if (state.initial != kNoBuffer) is_used[state.initial] = true;
    }
    for (std::size_t k = 0; k < is_used.size(); ++k) {
      if (is_used[k]) check_buffer(program_.buffers[k]);
    }
  }

 private:
  static std::string place_of(const Program::Buffer& buffer) {
    return concat("buffer '", buffer.name, "'");
  }

  void check_symbols(const Extent& extent, const std::string& where) const {
    for (const Extent::Instruction& step : extent.steps()) {
      if (step.op == Extent::Op::Symbol &&
          static_cast<std::uint64_t>(step.number) >= program_.symbols.size()) {
        throw broken("a symbol that there is not", where);
      }
    }
  }
  // Symbolic extents are checked by the run that computes them.
  void check_extent(const Extent& extent, const std::string& where) const {
    check_symbols(extent, where);
    if (extent.is_number() && extent.number() < 0) throw broken("a negative extent", where);
  }

  void check_symbol(const Program::Symbol& symbol) const {
    const std::string where = concat("extent '", symbol.name, "'");
    if (symbol.lo < 0 || symbol.lo > symbol.hi) throw broken("a range that has no number", where);
    if (symbol.buffer == kNoBuffer) return;  // undefined symbol
    const bool is_there =
        symbol.buffer < program_.buffers.size() &&
        (place(symbol.buffer) == BufferKind::Input || place(symbol.buffer) == BufferKind::Slot);
    if (!is_there || symbol.axis >= program_.buffers[symbol.buffer].dims.size()) {
      throw broken("it is read from no value", where);
    }
  }

  BufferKind place(std::uint32_t buffer) const { return program_.buffers[buffer].place; }
  BufferKind root_place(std::uint32_t buffer) const { return place(root_of(program_, buffer)); }

  // A view refers to an earlier buffer, so chains of views end.
  void check_views() const {
    for (std::size_t k = 0; k < program_.buffers.size(); ++k) {
      const Program::Buffer& buffer = program_.buffers[k];
      if (buffer.place == BufferKind::View && buffer.offset >= k)
        throw broken("a view of nothing", place_of(buffer));
    }
  }

  void check_ports() const {
    for (std::size_t k = 0; k < program_.inputs.size(); ++k) {
      const std::string where = concat("input ", k);
      const std::uint32_t id = program_.inputs[k];
      if (id >= program_.buffers.size()) throw broken("a buffer that there is not", where);
      if (place(id) != BufferKind::Input || program_.buffers[id].offset != k)
        throw broken("a buffer of another kind", where);
    }
    for (std::size_t k = 0; k < program_.outputs.size(); ++k) {
      const std::string where = concat("output ", k);
      const std::uint32_t id = program_.outputs[k];
      if (id >= program_.buffers.size()) throw broken("a buffer that there is not", where);
      const bool is_own = place(id) == BufferKind::Output && program_.buffers[id].offset == k;
      if (!is_own && (place(id) == BufferKind::Output || root_place(id) == BufferKind::Arena)) {
        throw broken("a buffer of another kind", where);
      }
    }
  }

  // Extents of a state may change from run to run if they are symbolic.
  static bool may_become(const Program::Buffer& next, const Program::Buffer& now) {
    return next.dtype == now.dtype && next.element_bytes == now.element_bytes &&
           now.element_bytes > 0 &&
           std::ranges::equal(next.dims, now.dims, [](const Extent& a, const Extent& b) {
             return !a.is_number() || !b.is_number() || a == b;
           });
  }

  void check_states() const {
    std::vector<bool> is_read(program_.inputs.size()), is_written(program_.outputs.size());
    for (std::size_t k = 0; k < program_.states.size(); ++k) {
      const Program::State& state = program_.states[k];
      const std::string where = concat("state ", k);
      if (state.input >= is_read.size() || state.output >= is_written.size())
        throw broken("a port that there is not", where);
      if (is_read[state.input] || is_written[state.output])
        throw broken("a port of another state", where);
      is_read[state.input] = is_written[state.output] = true;
      const Program::Buffer& now = program_.buffers[program_.inputs[state.input]];
      const Program::Buffer& next = program_.buffers[program_.outputs[state.output]];
      if (!may_become(next, now)) throw broken("a next value of another type", where);
      if (state.may_overwrite && !is_read_first(program_, state.input, state.output))
        throw broken("a value that is read after it is overwritten", where);
      if (state.initial == kNoBuffer) continue;
      if (state.initial >= program_.buffers.size() ||
          place(state.initial) != BufferKind::Constant ||
          !may_become(program_.buffers[state.initial], now))
        throw broken("an initial value that does not fit", where);
    }
  }

  // Returns nullopt if the size is symbolic.
  std::optional<std::uint64_t> bytes_of(const Program::Buffer& buffer) const {
    std::uint64_t bytes = buffer.element_bytes;
    bool is_fixed = true;
    for (const Extent& dim : buffer.dims) {
      check_extent(dim, place_of(buffer));
      is_fixed = is_fixed && dim.is_number();
    }
    if (!is_fixed) return std::nullopt;
    const bool is_empty =
        std::ranges::any_of(buffer.dims, [](const Extent& dim) { return dim.number() == 0; });
    if (is_empty) return 0;
    for (const Extent& dim : buffer.dims) {
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim.number()), &bytes)) {
        throw broken("more bytes than can be counted", place_of(buffer));
      }
    }
    return bytes;
  }

  void check_buffer(const Program::Buffer& buffer) const {
    // Values that are not tensors, or whose elements only operators interpret.
    const bool is_opaque = buffer.place == BufferKind::Slot || buffer.place == BufferKind::Input;
    if (!is_opaque && (buffer.element_bytes == 0 || buffer.element_bytes > kMaxElementBytes)) {
      throw broken(concat("elements of ", buffer.element_bytes, " bytes"), place_of(buffer));
    }
    const std::optional<std::uint64_t> bytes = bytes_of(buffer);
    const auto require_inside = [&](std::uint64_t whole, std::string_view what) {
      if (!bytes)
        throw broken(concat("its extents vary, though it lies in the ", what), place_of(buffer));
      if (buffer.offset % kArenaAlignment != 0) throw broken("it is not aligned", place_of(buffer));
      if (buffer.offset > whole || *bytes > whole - buffer.offset) {
        throw broken(concat("it ends outside the ", what), place_of(buffer));
      }
    };
    switch (buffer.place) {
      case Program::BufferKind::Input:
        require_port(buffer, program_.inputs);
        break;
      case Program::BufferKind::Output:
        require_port(buffer, program_.outputs);
        break;
      case Program::BufferKind::Constant:
        require_inside(program_.constant_bytes, "constants");
        break;
      case Program::BufferKind::Arena:
        if (program_.is_arena_planned) require_inside(program_.arena_bytes, "arena");
        for (const Extent& dim : buffer.dims) require_of_inputs(dim, place_of(buffer));
        break;
      case Program::BufferKind::Slot:
      case Program::BufferKind::View:
        break;
      default:
        throw broken("it lies nowhere", place_of(buffer));
    }
  }

  // Only the buffer of a port has the memory of the caller.
  void require_port(const Program::Buffer& buffer, const std::vector<std::uint32_t>& ports) const {
    if (buffer.offset >= ports.size() || &program_.buffers[ports[buffer.offset]] != &buffer)
      throw broken("it belongs to no input or output", place_of(buffer));
  }

  // The arena is laid out before the first step, so its extents may depend on inputs only.
  void require_of_inputs(const Extent& extent, const std::string& where) const {
    for (const Extent::Instruction& step : extent.steps()) {
      if (step.op != Extent::Op::Symbol) continue;
      const std::uint32_t source = program_.symbols[static_cast<std::size_t>(step.number)].buffer;
      if (source == kNoBuffer || place(source) != BufferKind::Input) {
        throw broken("extents that are known too late", where);
      }
    }
  }
  void require_bound(const Extent& extent, const std::string& where) const {
    check_symbols(extent, where);
    for (const Extent::Instruction& step : extent.steps()) {
      if (step.op != Extent::Op::Symbol) continue;
      const std::uint32_t source = program_.symbols[static_cast<std::size_t>(step.number)].buffer;
      if (source == kNoBuffer || !is_set_[source])
        throw broken("an extent before it is known", where);
    }
  }

  // A slot is undefined until a step sets it; other buffers always exist.
  void require_set(std::uint32_t buffer, const std::string& where) const {
    const std::uint32_t root = root_of(program_, buffer);
    // A buffer without elements needs no definition.
    const bool is_empty = std::ranges::any_of(program_.buffers[root].dims,
                                              [](const Extent& dim) { return dim == Extent(0); });
    if (place(root) == BufferKind::Slot && !is_set_[root] && !is_empty)
      throw broken("a value before it is made", where);
  }
  void set(std::uint32_t buffer, const std::string& where) {
    if (place(buffer) != BufferKind::Slot || is_set_[buffer]) return;
    if (program_.buffers[buffer].element_bytes > sizeof(std::string)) {
      throw broken("elements of no size", where);
    }
    is_set_[buffer] = true;
    made_.push_back(buffer);
  }
  void require_result(std::uint32_t buffer, const std::string& where) const {
    if (place(buffer) != BufferKind::Slot && place(buffer) != BufferKind::Arena &&
        place(buffer) != BufferKind::Output) {
      throw broken("it gives what cannot be written", where);
    }
  }
  void require_slot(std::uint32_t buffer, const std::string& where) const {
    if (place(buffer) != BufferKind::Slot) throw broken("it gives what cannot be given", where);
  }

  void check_steps(std::uint32_t begin, std::uint32_t end, int depth) {
    if (depth > kMaxDepth) throw broken("bodies inside bodies without end", concat("step ", begin));
    for (std::uint32_t k = begin; k < end; ++k) {
      const Program::Step& step = program_.steps[k];
      const std::string where = concat("step ", k, " ('", step.name, "')");
      switch (step.kind) {
        case Kind::Kernel:
          check_kernel(k, where);
          break;
        case Kind::Host:
          check_operator(program_.operators[step.detail], where);
          break;
        case Kind::Branch:
          k = check_branch(k, end, depth, where);
          break;
        case Kind::Loop:
          k = check_loop(k, end, depth, where);
          break;
        default:
          throw broken("a step of no kind", where);
      }
    }
  }

  // Values defined in a body are not visible outside of it.
  void check_body(std::uint32_t begin, std::uint32_t end, int depth,
                  std::span<const std::uint32_t> given, std::span<const std::uint32_t> outs,
                  const std::string& where) {
    const std::size_t before = made_.size();
    for (const std::uint32_t id : given) set(id, where);
    check_steps(begin, end, depth + 1);
    for (const std::uint32_t id : outs) require_set(id, where);
    for (; made_.size() > before; made_.pop_back()) is_set_[made_.back()] = false;
  }

  void check_operator(const HostOperator& made, const std::string& where) {
    for (const std::uint32_t id : made.operands) {
      if (id != kNoBuffer) require_set(id, where);
    }
    for (const ProgramAttribute& attribute : made.attributes) {
      for (const Extent& extent : attribute.integers) check_symbols(extent, where);
    }
    for (const std::uint32_t id : made.results) {
      if (id == kNoBuffer) continue;
      require_slot(id, where);
      set(id, where);
    }
  }

  std::uint32_t check_branch(std::uint32_t k, std::uint32_t end, int depth,
                             const std::string& where) {
    const BranchStep& made = program_.branches[program_.steps[k].detail];
    require_set(made.condition, where);
    if (made.then_end <= k || made.then_end > made.else_end || made.else_end > end) {
      throw broken("bodies that are not after it", where);
    }
    std::vector<std::uint32_t> first, second;
    for (const BranchStep::Result& each : made.results) {
      require_result(each.result, where);
      first.push_back(each.first);
      second.push_back(each.second);
    }
    check_body(k + 1, made.then_end, depth, {}, first, where);
    check_body(made.then_end, made.else_end, depth, {}, second, where);
    for (const BranchStep::Result& each : made.results) set(each.result, where);
    return made.else_end - 1;
  }

  std::uint32_t check_loop(std::uint32_t k, std::uint32_t end, int depth,
                           const std::string& where) {
    const LoopStep& made = program_.loops[program_.steps[k].detail];
    if (made.end <= k || made.end > end) throw broken("a body that is not after it", where);
    std::vector<std::uint32_t> given, outs;
    const auto give = [&](std::uint32_t id) {
      require_slot(id, where);
      given.push_back(id);
    };
    for (const std::uint32_t id : {made.trip_count, made.condition}) {
      if (id != kNoBuffer) require_set(id, where);
    }
    for (const std::uint32_t id : {made.counter, made.goes_on}) {
      if (id != kNoBuffer) give(id);
    }
    if (made.condition != kNoBuffer && made.next_condition == kNoBuffer)
      throw broken("a condition that stays", where);
    if (made.next_condition != kNoBuffer) outs.push_back(made.next_condition);
    for (const LoopStep::Carried& each : made.carried) {
      require_set(each.initial, where);
      give(each.in);
      outs.push_back(each.out);
      if (each.is_direct) require_slot(each.out, where);
      if (each.result != kNoBuffer) require_result(each.result, where);
      if (each.spare != kNoBuffer && place(each.spare) != BufferKind::Arena)
        throw broken("a place that is none", where);
    }
    for (const LoopStep::Scanned& each : made.scanned) {
      require_set(each.source, where);
      give(each.in);
    }
    for (const LoopStep::Stacked& each : made.stacked) {
      require_result(each.result, where);
      outs.push_back(each.out);
      if (each.is_direct) require_slot(each.out, where);
    }
    check_body(k + 1, made.end, depth, given, outs, where);
    for (const LoopStep::Carried& each : made.carried) {
      if (each.result != kNoBuffer) set(each.result, where);
    }
    for (const LoopStep::Stacked& each : made.stacked) set(each.result, where);
    return made.end - 1;
  }

  // Checks the limits of TMA tensor maps: up to five axes, each stride at least the extent of the
  // inner axes.
  void check_map(const Program::TensorMap& map, const std::string& where) const {
    check_extent(map.rows, where);
    const std::size_t inside = map.extents.size();
    bool is_sound = inside >= 1 && inside <= 4 && map.pitches.size() == inside &&
                    map.box.size() == inside + 1 && map.steps.size() == inside + 1;
    std::uint64_t pitch = 1, least = 0;
    for (std::size_t k = 0; is_sound && k < inside; ++k) {
      const bool fits = !__builtin_mul_overflow(map.extents[k], pitch, &least);
      is_sound =
          fits && map.extents[k] >= 1 && map.extents[k] <= UINT32_MAX && map.pitches[k] >= least;
      pitch = map.pitches[k];
    }
    for (const std::uint64_t size : map.box) is_sound = is_sound && size >= 1 && size <= 256;
    for (const std::uint64_t step : map.steps) is_sound = is_sound && step >= 1 && step <= 8;
    if (!is_sound || !has_sound_window(map)) throw broken("a map of no tensor", where);
  }

  // Im2col maps need images of rows and columns; offsets of the first and last window position from
  // the image borders must fit in a signed byte.
  static bool has_sound_window(const Program::TensorMap& map) {
    if (map.before.empty() && map.places.empty()) return true;
    if (map.before.size() != 2 || map.places.size() != 2 || map.extents.size() != 3) return false;
    for (std::size_t k = 0; k < 2; ++k) {
      if (map.before[k] > 128 || map.places[k] < 1 || map.places[k] > UINT32_MAX) return false;
      const std::int64_t last = Program::last_place(map, k);
      if (last < -128 || last > 127) return false;
    }
    return true;
  }

  void check_kernel(std::uint32_t index, const std::string& where) {
    const Program::Step& step = program_.steps[index];
    for (const Program::Guard& guard : step.when) {
      if (guard.symbol >= program_.symbols.size())
        throw broken("a symbol that there is not", where);
      require_bound(Extent::symbol(guard.symbol), where);
    }
    check_call(step, index, where);
    require_bound(step.work, where);
    require_bound(program_.kernels[step.kernel].scratch_bytes, where);
    for (const Program::TensorMap& map : program_.kernels[step.kernel].maps) {
      require_bound(map.rows, where);
      if (map.buffer >= step.buffers.size()) throw broken("a map of none of its buffers", where);
    }
    for (const Extent& extent : step.extents) require_bound(extent, where);
    for (const std::uint32_t id : step.buffers) {
      for (const Extent& dim : program_.buffers[id].dims) require_bound(dim, where);
      const bool is_opaque = (place(id) == BufferKind::Slot || place(id) == BufferKind::Input) &&
                             program_.buffers[id].element_bytes == 0;
      if (place(id) == BufferKind::View || is_opaque)
        throw broken("it uses what is no buffer", where);
      set(id, where);
    }
  }

  void check_call(const Program::Call& call, std::size_t index, const std::string& where) {
    if (call.kernel >= program_.kernels.size()) throw broken("a kernel that there is not", where);
    check_extent(call.work, where);
    for (const Extent& extent : call.extents) check_symbols(extent, where);
    for (const std::uint32_t id : call.buffers) {
      if (id >= program_.buffers.size()) throw broken("a buffer that there is not", where);
      const Program::Buffer& buffer = program_.buffers[id];
      const bool is_alive = index >= buffer.first_step && index <= buffer.last_step;
      if (buffer.place == Program::BufferKind::Arena && !is_alive) {
        throw broken(concat("it uses ", place_of(buffer), ", which is not alive then"), where);
      }
    }
    // The number of operands that a kernel reads is only in its code; the calls of a kernel must at
    // least agree.
    const Program::Call*& first = first_of_kernel_[call.kernel];
    if (first == nullptr) first = &call;
    if (first->buffers.size() != call.buffers.size() ||
        first->extents.size() != call.extents.size()) {
      throw broken("other operands than its kernel has elsewhere", where);
    }
  }

  const Program& program_;
  std::vector<const Program::Call*> first_of_kernel_;
  std::vector<bool> is_set_;         // by buffer: slots that are defined at this point
  std::vector<std::uint32_t> made_;  // defined slots in order of definition
};

}  // namespace

void verify(const Program& program) { ProgramVerifier(program).run(); }

}  // namespace tenon::inline program
