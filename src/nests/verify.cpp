#include "nests/verify.h"

#include "base/error.h"
#include "nests/access_map.h"
#include "nests/bf16_dot.h"
#include "nests/stride.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace tenon::nests {
namespace {

bool is_side_by_side(LoopKind kind) {
  return kind == LoopKind::Vector || kind == LoopKind::ParallelVector || kind == LoopKind::Jam;
}

// Checks statements individually.
class Structure {
 public:
  Structure(const LoopNest& nest, std::vector<std::string>& faults) : nest_(nest), faults_(faults) {
    is_defined_.assign(nest.locals.size(), false);
    defined_at_.assign(nest.locals.size(), 0);
  }

  void run() { visit(nest_.body, true); }

 private:
  void fault(std::string text) { faults_.push_back(std::move(text)); }

  void visit(const Block& block, bool is_outside) {
    const std::vector<bool> before = is_defined_;
    for (const Statement& s : block) {
      seen_.clear();
      for (const Scalar* scalar : {&s.limit, &s.value, &s.place}) {
        if (scalar->is_defined()) visit(*scalar);
      }
      for (const Scalar& index : s.indices) visit(index);
      switch (s.kind) {
        case Statement::Kind::Loop:
          visit_loop(s, is_outside && block.size() == 1);
          break;
        case Statement::Kind::Define:
          if (s.id >= nest_.locals.size())
            fault(concat("there is no local t", s.id));
          else {
            is_defined_[s.id] = true;
            defined_at_[s.id] = loops_.size();
          }
          break;
        case Statement::Kind::Fold:
          visit_fold(s);
          break;
        case Statement::Kind::Store:
        case Statement::Kind::Update:
          visit_write(s);
          break;
      }
    }
    is_defined_ = before;
  }

  std::string name_of_loop(const Statement& s) const {
    return s.id < nest_.loop_names.size() ? nest_.loop_names[s.id] : concat("number ", s.id);
  }

  void visit_loop(const Statement& s, bool is_outside) {
    const std::string name = name_of_loop(s);
    if (s.id >= nest_.loop_names.size()) fault(concat("there is no loop number ", s.id));
    if (s.width < 1) fault(concat("loop ", name, " runs no positions at a time"));
    const bool is_item = s.loop == LoopKind::Parallel || s.loop == LoopKind::ParallelVector;
    if (is_item && (!is_outside || (s.loop == LoopKind::ParallelVector && !loops_.empty()))) {
      fault(
          concat("loop ", name, " is shared out, yet not all that is around it and beside it is"));
    }
    if (is_item && s.limit.is_defined())
      fault(concat("loop ", name, " is shared out and has a limit"));
    const bool is_in_jam = std::ranges::any_of(
        loops_, [](const Statement* loop) { return loop->loop == LoopKind::Jam; });
    if (is_in_jam && s.loop == LoopKind::Jam)
      fault(concat("loop ", name, " is a jam inside a jam"));
    const bool is_uneven =
        s.limit.is_defined() && std::ranges::any_of(loops_, [&](const Statement* loop) {
          return loop->loop == LoopKind::Jam && depends_on(s.limit, loop->id);
        });
    if (is_uneven || (is_in_jam && s.limit.is_defined() && s.loop != LoopKind::Serial))
      fault(concat("loop ", name, " has a limit inside a jam"));
    if (s.loop == LoopKind::Serial && s.width > 1 && !is_bf16_dot(s)) {
      fault(concat("loop ", name, " runs ", s.width,
                   " positions at a time, and is no pair of products of bf16 that are added up"));
    }
    const bool is_dot = s.loop == LoopKind::Dot;
    if (is_dot && (!(s.extent == Dim(4)) || s.is_independent || !is_fold(s))) {
      fault(concat("loop ", name, " is a dot, and does not add up four products"));
    }
    if (!s.is_independent && s.loop != LoopKind::Serial && !is_dot &&
        (s.loop != LoopKind::Vector || !is_fold(s))) {
      fault(concat("passes of loop ", name, " depend on each other, and are run side by side"));
    }
    loops_.push_back(&s);
    visit(s.body, s.loop == LoopKind::Parallel && is_outside);
    loops_.pop_back();
  }

  static bool is_fold(const Statement& loop) {
    const Block* block = &loop.body;
    while (block->size() == 1 && block->front().kind == Statement::Kind::Loop)
      block = &block->front().body;
    return block->size() == 1 && block->front().kind == Statement::Kind::Fold &&
           !block->front().place.is_defined();
  }

  void visit_fold(const Statement& s) {
    if (s.id >= nest_.locals.size() || !is_defined_[s.id]) {
      fault(concat("t", s.id, " is folded into before it has a value"));
      return;
    }
    for (std::size_t k = defined_at_[s.id]; k < loops_.size(); ++k) {
      if (loops_[k]->is_independent) {
        fault(concat("passes of loop ", name_of_loop(*loops_[k]),
                     " are said to be independent, and fold into t", s.id));
      }
    }
  }

  void visit_write(const Statement& s) {
    if (s.id >= nest_.buffers.size()) {
      fault(concat("there is no buffer number ", s.id));
      return;
    }
    const NestBuffer& buffer = nest_.buffers[s.id];
    if (buffer.storage == StorageClass::Operand)
      fault(concat(buffer.name, " is only read, and written"));
    visit_view(buffer, s.view, s.indices.size());
  }

  void visit_view(const NestBuffer& buffer, const Dims& view, std::size_t index_count) {
    if (view.size() != index_count) {
      fault(concat(buffer.name, " has ", view.size(), " axes and ", index_count, " coordinates"));
    }
    const Dim seen = product(view), there = product(buffer.dims);
    if (seen.is_constant() && there.is_constant() && there.constant() < seen.constant()) {
      fault(concat(buffer.name, buffer.dims, " is seen as ", view, ", which is more"));
    }
  }

  void visit(const Scalar& scalar) {
    if (!scalar->args.empty() && !seen_.insert(&scalar.node()).second) return;
    switch (scalar->kind) {
      case ScalarKind::Loop: {
        const bool is_open = std::ranges::any_of(
            loops_, [&](const Statement* loop) { return loop->id == scalar->id; });
        if (!is_open) {
          const bool is_named = scalar->id < nest_.loop_names.size();
          fault(concat("the position of loop ",
                       is_named ? nest_.loop_names[scalar->id] : std::to_string(scalar->id),
                       " is read outside of it"));
        }
        break;
      }
      case ScalarKind::Local:
      case ScalarKind::Position:
        if (scalar->id >= nest_.locals.size() || !is_defined_[scalar->id]) {
          fault(concat("t", scalar->id, " is read before it has a value"));
        }
        break;
      case ScalarKind::Extent:
        if (scalar->id >= nest_.extents.size())
          fault(concat("there is no extent number ", scalar->id));
        break;
      case ScalarKind::Load: {
        if (scalar->id >= nest_.buffers.size()) {
          fault(concat("there is no buffer number ", scalar->id));
          break;
        }
        const std::size_t fill = scalar->bounds == Bounds::Fill ? 1 : 0;
        visit_view(nest_.buffers[scalar->id], scalar->view,
                   scalar->args.size() - std::min(fill, scalar->args.size()));
        break;
      }
      default:
        break;
    }
    for (const Scalar& arg : scalar->args) visit(arg);
  }

  const LoopNest& nest_;
  std::vector<std::string>& faults_;
  std::vector<const Statement*> loops_;
  std::vector<bool> is_defined_;
  std::vector<std::size_t> defined_at_;  // By local: number of enclosing loops at its definition.
  std::unordered_set<const ScalarNode*> seen_;
};

// Checks element accesses of a structurally valid nest.
class ElementOrderCheck {
 public:
  ElementOrderCheck(const LoopNest& nest, std::vector<std::string>& faults)
      : nest_(nest), faults_(faults), all_(accesses_of(nest)) {}

  void run() {
    for (const ElementAccess& access : all_) check_bounds(access);
    for (const ElementAccess& load : all_) {
      if (load.kind == ElementAccess::Kind::Load &&
          nest_.buffers[load.buffer].storage != StorageClass::Operand)
        check_order(load);
    }
    for (const ElementAccess& store : all_) {
      if (store.kind == ElementAccess::Kind::Store) check_parallel(store);
    }
  }

 private:
  const std::string& name(std::size_t buffer) const { return nest_.buffers[buffer].name; }

  enum class Trips : std::uint8_t { None, Unknown, Some };

  // `depth`: the index of the loop among those around the access.
  Trips trips(const ElementAccess& access, std::size_t depth) {
    const Statement* loop = access.loops[depth];
    const auto [known, is_new] = trips_.try_emplace(loop, Trips::Unknown);
    if (!is_new) return known->second;
    const std::vector<const Statement*> around(
        access.loops.begin(), access.loops.begin() + static_cast<std::ptrdiff_t>(depth));
    if (nests::never_runs(nest_, *loop, around)) {
      known->second = Trips::None;
    } else if (always_runs(nest_, *loop, around)) {
      known->second = Trips::Some;
    }
    return known->second;
  }

  bool never_runs(const ElementAccess& access) {
    for (std::size_t depth = 0; depth < access.loops.size(); ++depth) {
      if (trips(access, depth) == Trips::None) return true;
    }
    return false;
  }

  // Returns whether a loop that does not determine the index may exclude some of its values: a
  // condition, such as `for if in 0..(1 min (5 - i))`.
  bool is_conditional(const ElementAccess& access, const AffineDim& index) {
    for (std::size_t depth = 0; depth < access.loops.size(); ++depth) {
      const Statement& loop = *access.loops[depth];
      if (!loop.limit.is_defined() || index.steps.contains(loop.id)) continue;
      const bool is_dependent = std::ranges::any_of(
          index.steps, [&](const auto& step) { return depends_on(loop.limit, step.first); });
      if (is_dependent && trips(access, depth) != Trips::Some) return true;
    }
    return false;
  }

  void check_bounds(const ElementAccess& access) {
    const bool is_checked =
        access.bounds != Bounds::Inside || access.kind == ElementAccess::Kind::Update;
    if (is_checked || never_runs(access)) return;
    for (std::size_t axis = 0; axis < access.view->size(); ++axis) {
      const auto index = affine_dim_of(nest_, access.indices[axis]);
      if (!index || is_conditional(access, *index)) continue;
      const Dim& extent = (*access.view)[axis];
      const auto last = greatest(nest_, *index, access.loops), first = least(*index, access.loops);
      if (last && provably_at_most(extent, *last)) {
        faults_.push_back(concat(name(access.buffer), " is accessed at ", *last, " along axis ",
                                 axis, ", which has ", extent));
      }
      if (first && provably_at_most(*first, Dim(-1))) {
        faults_.push_back(
            concat(name(access.buffer), " is accessed at ", *first, " along axis ", axis));
      }
    }
  }

  // Returns the number of loops, from the outermost, that enclose both.
  static std::size_t common_loops(const ElementAccess& a, const ElementAccess& b) {
    std::size_t count = 0;
    while (count < a.loops.size() && count < b.loops.size() && a.loops[count] == b.loops[count])
      ++count;
    return count;
  }

  void check_order(const ElementAccess& load) {
    std::vector<const ElementAccess*> before;
    bool is_handed_on = false;  // Carried between iterations of a loop.
    for (const ElementAccess& write : all_) {
      if (write.buffer != load.buffer || write.kind == ElementAccess::Kind::Load) continue;
      if (write.order < load.order) before.push_back(&write);
      const std::size_t common = common_loops(write, load);
      for (std::size_t k = 0; k < common; ++k) is_handed_on |= !load.loops[k]->is_independent;
    }
    if (is_handed_on) return;
    // An empty buffer is written by no loop, and its loads are never in bounds.
    const bool is_empty =
        std::ranges::any_of(*load.view, [](const Dim& dim) { return dim == Dim(0); });
    if (before.empty() && is_empty) return;
    if (before.empty()) {
      faults_.push_back(concat(name(load.buffer), " is read before anything is written to it"));
      return;
    }
    if (load.bounds != Bounds::Inside || never_runs(load)) return;
    for (std::size_t axis = 0; axis < load.view->size(); ++axis) check_written(load, before, axis);
  }

  // Checks whether an iteration of the common loops reads beyond all preceding stores.
  void check_written(const ElementAccess& load, const std::vector<const ElementAccess*>& before,
                     std::size_t axis) {
    bool is_past = true;
    std::optional<Dim> read;
    for (const ElementAccess* store : before) {
      if (*store->view != *load.view) return;
      const auto from = affine_dim_of(nest_, load.indices[axis]),
                 to = affine_dim_of(nest_, store->indices[axis]);
      if (!from || !to) return;
      const std::size_t common = common_loops(*store, load);
      AffineDim reading = *from, writing = *to;
      for (std::size_t k = 0; k < common; ++k) {
        const std::size_t loop = load.loops[k]->id;
        const auto step = [&](const AffineDim& value) {
          return value.steps.contains(loop) ? value.steps.at(loop) : 0;
        };
        if (step(reading) != step(writing)) return;
        reading.steps.erase(loop);
        writing.steps.erase(loop);
      }
      read = greatest(nest_, reading, load.loops);
      const auto written = greatest(nest_, writing, store->loops);
      is_past &= read && written && provably_at_most(*written + Dim(1), *read);
    }
    if (is_past && read) {
      faults_.push_back(concat(name(load.buffer), " is read at ", *read, " along axis ", axis,
                               ", where nothing was written"));
    }
  }

  void check_parallel(const ElementAccess& store) {
    const auto place = place_of(nest_, store);
    if (!place || never_runs(store)) return;
    const bool is_scratch = nest_.buffers[store.buffer].storage == StorageClass::Scratch;
    const auto step = [](const AffineDim& value, const Statement& loop) {
      return value.steps.contains(loop.id) ? value.steps.at(loop.id) : 0;
    };
    for (std::size_t k = 0; k < store.loops.size(); ++k) {
      const Statement& loop = *store.loops[k];
      if (!loop.is_independent || loop.extent.range().lo < 2) continue;
      // Scratch is reused by consecutive iterations.
      if (is_scratch && !is_side_by_side(loop.loop)) continue;
      const std::string& loop_name = nest_.loop_names[loop.id];
      const std::int64_t along = step(*place, loop);
      if (along == 0) {
        faults_.push_back(concat("all passes of loop ", loop_name, " write the same element of ",
                                 name(store.buffer)));
        continue;
      }
      for (std::size_t inner = k + 1; inner < store.loops.size(); ++inner) {
        const Statement& other = *store.loops[inner];
        const std::int64_t across = step(*place, other);
        if (across == 0 || loop.limit.is_defined() || other.limit.is_defined()) continue;
        const std::int64_t divisor = std::gcd(along, across);
        if (std::abs(across / divisor) < loop.extent.range().lo &&
            std::abs(along / divisor) < other.extent.range().lo) {
          faults_.push_back(concat("passes of loop ", loop_name, " write elements of ",
                                   name(store.buffer), " that others write, along ",
                                   nest_.loop_names[other.id]));
        }
      }
      check_handed(store, *place, k);
    }
  }

  // Checks whether an iteration of an independent loop reads an element that another one writes.
  void check_handed(const ElementAccess& store, const AffineDim& written, std::size_t depth) {
    const Statement& loop = *store.loops[depth];
    for (const ElementAccess& load : all_) {
      if (load.kind != ElementAccess::Kind::Load || load.buffer != store.buffer ||
          load.bounds != Bounds::Inside)
        continue;
      if (common_loops(store, load) <= depth) continue;
      const auto read = place_of(nest_, load);
      if (!read || read->steps != written.steps) continue;
      const bool is_inner = std::any_of(
          store.loops.begin() + static_cast<std::ptrdiff_t>(depth) + 1, store.loops.end(),
          [&](const Statement* inner) { return written.steps.contains(inner->id); });
      const Dim apart = read->start - written.start;
      const std::int64_t along = written.steps.at(loop.id);
      if (is_inner || loop.limit.is_defined() || !apart.is_constant() || apart.constant() == 0)
        continue;
      if (apart.constant() % along == 0 &&
          std::abs(apart.constant() / along) < loop.extent.range().lo) {
        faults_.push_back(concat("passes of loop ", nest_.loop_names[loop.id], " read of ",
                                 name(store.buffer), " what others write"));
      }
    }
  }

  const LoopNest& nest_;
  std::vector<std::string>& faults_;
  const std::vector<ElementAccess> all_;
  std::unordered_map<const Statement*, Trips> trips_;
};

}  // namespace

std::vector<std::string> faults_of(const LoopNest& nest) {
  std::vector<std::string> faults;
  Structure(nest, faults).run();
  if (faults.empty()) ElementOrderCheck(nest, faults).run();
  return faults;
}

void verify(const LoopNest& nest) {
  const std::vector<std::string> faults = faults_of(nest);
  if (faults.empty()) return;
  throw InternalError("faults_of(nest).empty()",
                      concat("a loop nest is sound: ", faults.front(), "\n", nest), __FILE__,
                      __LINE__);
}

}  // namespace tenon::nests
