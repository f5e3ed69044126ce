#include "runtime/segments.h"

#include <algorithm>
#include <set>

namespace tenon::inline runtime {
namespace {

using Kind = Program::StepKind;

// Buffers that host steps define before any kernel writes to them; segments need not allocate
// those.
struct Given {
  std::vector<bool> is_given;

  explicit Given(const Program& program) : is_given(program.buffers.size(), false) {
    for (const HostOperator& made : program.operators) {
      for (const std::uint32_t id : made.results) give(id);
    }
    for (const BranchStep& made : program.branches) {
      for (const BranchStep::Result& each : made.results) give(each.result);
    }
    for (const LoopStep& made : program.loops) {
      for (const std::uint32_t id : {made.counter, made.goes_on}) give(id);
      for (const auto& each : made.carried) {
        for (const std::uint32_t id : {each.in, each.result, each.spare}) give(id);
        if (each.is_direct) give(each.out);
      }
      for (const auto& each : made.scanned) give(each.in);
      for (const auto& each : made.stacked) {
        give(each.result);
        if (each.is_direct) give(each.out);
      }
    }
  }

 private:
  void give(std::uint32_t id) {
    if (id != kNoBuffer) is_given[id] = true;
  }
};

void add_symbols(const Extent& extent, std::set<std::uint32_t>& symbols) {
  for (const Extent::Instruction& step : extent.steps()) {
    if (step.op == Extent::Op::Symbol) symbols.insert(static_cast<std::uint32_t>(step.number));
  }
}

class Divider {
 public:
  explicit Divider(const Program& program)
      : program_(program),
        given_(program),
        uses_(program.buffers.size()),
        makers_(program.buffers.size(), kNoBuffer) {
    for (std::uint32_t k = 0; k < program.steps.size(); ++k) {
      for (const std::uint32_t id : program.steps[k].buffers) {
        uses_[root_of(program, id)].push_back(k);
        if (program.steps[k].kind == Kind::Kernel && makers_[id] == kNoBuffer) makers_[id] = k;
      }
    }
    for (const std::uint32_t id : program.outputs) {
      uses_[root_of(program, id)].push_back(static_cast<std::uint32_t>(program.steps.size()));
    }
  }

  std::vector<Segment> run() {
    const auto count = static_cast<std::uint32_t>(program_.steps.size());
    std::vector<bool> is_cut(count + 1, false);
    for (std::uint32_t k = 0; k < count; ++k) {
      const Program::Step& step = program_.steps[k];
      if (step.kind == Kind::Kernel) continue;
      is_cut[k] = is_cut[k + 1] = is_cut[end_of(program_, k)] = true;
      if (step.kind == Kind::Branch) is_cut[program_.branches[step.detail].then_end] = true;
    }
    is_cut[count] = true;
    std::vector<Segment> segments;
    for (std::uint32_t begin = 0, k = 0; k < count; ++k) {
      if (!is_cut[k + 1]) continue;
      if (program_.steps[begin].kind == Kind::Kernel) segments.push_back(segment(begin, k + 1));
      begin = k + 1;
    }
    return segments;
  }

 private:
  Segment segment(std::uint32_t begin, std::uint32_t end) const {
    Segment made{begin, end, {}, {}, {}, {}};
    std::set<std::uint32_t> used, symbols;
    for (std::uint32_t k = begin; k < end; ++k) {
      const Program::Step& step = program_.steps[k];
      used.insert(step.buffers.begin(), step.buffers.end());
      for (const Extent& extent : step.extents) add_symbols(extent, symbols);
      add_symbols(step.work, symbols);
      add_symbols(program_.kernels[step.kernel].scratch_bytes, symbols);
      for (const Program::TensorMap& map : program_.kernels[step.kernel].maps)
        add_symbols(map.rows, symbols);
      for (const Program::Guard& guard : step.when) symbols.insert(guard.symbol);
    }
    // Conditions on symbols that steps compute must be checked again when the symbols change.
    for (const ShapeCheck& check : program_.checks) {
      if (begin < check.begin || begin >= check.end) continue;
      add_symbols(check.a, symbols);
      add_symbols(check.b, symbols);
    }
    for (const std::uint32_t id : used) {
      for (const Extent& dim : program_.buffers[id].dims) add_symbols(dim, symbols);
      note(id, made);
    }
    made.symbols.assign(symbols.begin(), symbols.end());
    return made;
  }

  void note(std::uint32_t id, Segment& segment) const {
    const Program::BufferKind place = program_.buffers[id].place;
    if (place == Program::BufferKind::Constant) return;
    const auto is_inside = [&](std::uint32_t step) {
      return step >= segment.begin && step < segment.end;
    };
    const bool is_own = place != Program::BufferKind::Input &&
                        place != Program::BufferKind::Output && !given_.is_given[id] &&
                        is_inside(makers_[id]);
    if (is_own && place == Program::BufferKind::Slot) segment.slots.push_back(id);
    const bool is_written = place == Program::BufferKind::Output ||
                            (is_own && (place == Program::BufferKind::Slot ||
                                        !std::ranges::all_of(uses_[id], is_inside)));
    if (is_written) {
      segment.writes.push_back(id);
    } else if (!is_own) {
      segment.reads.push_back(id);
    }
  }

  const Program& program_;
  const Given given_;
  std::vector<std::vector<std::uint32_t>> uses_;  // steps, by buffer
  std::vector<std::uint32_t> makers_;             // first kernel that uses the buffer
};

}  // namespace

std::vector<Segment> segments_of(const Program& program) {
  if (!program.is_kernel_only()) return Divider(program).run();
  Segment all{
      0, static_cast<std::uint32_t>(program.steps.size()), program.inputs, program.outputs, {}, {}};
  for (std::uint32_t k = 0; k < program.symbols.size(); ++k) all.symbols.push_back(k);
  return {all};
}

}  // namespace tenon::inline runtime
