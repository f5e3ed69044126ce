// Builds the fused nest of tile-and-fuse: reader first, then producers in reverse order.
#include "nests/fused_nest.h"

#include "base/error.h"
#include "expr/access.h"
#include "nests/affine.h"
#include "nests/contraction.h"
#include "nests/index_map.h"
#include "nests/integer_contraction.h"
#include "nests/stride.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace tenon::nests {
namespace {

using Part = NestSequence::NestCall;

double bytes_of(const Dims& dims, DType dtype) {
  return static_cast<double>(info(dtype).storage_bytes) * size_hint(product(dims));
}
// Size of thread-local scratch; symbolic extents are assumed to be long.
double local_bytes_of(const NestBuffer& buffer) {
  constexpr double kLongExtent = 512;
  double bytes = static_cast<double>(info(buffer.dtype).storage_bytes);
  for (const Dim& dim : buffer.dims) bytes *= dim.is_constant() ? size_hint(dim) : kLongExtent;
  return bytes;
}

// The independent loops around a body, outermost first.
struct Kept {
  std::vector<Statement> loops;  // Without bodies.
  Block inner;
};
// Returns the single independent loop of a block; null for any other block.
const Statement* sole_loop(const Block& block) {
  const bool is_loop = block.size() == 1 && block.front().kind == Statement::Kind::Loop;
  return is_loop && block.front().is_independent ? &block.front() : nullptr;
}
Kept kept_of(Block block) {
  Kept kept;
  while (sole_loop(block) != nullptr) {
    Block body = std::move(block.front().body);
    block.front().body.clear();
    kept.loops.push_back(std::move(block.front()));
    block = std::move(body);
  }
  kept.inner = std::move(block);
  return kept;
}

// Cost of moving an element without locality.
constexpr double kMovedFlops = 64;
constexpr double kLineBytes = 64;

class FusedNestBuilder {
 public:
  FusedNestBuilder(const NestSequence& sequence, std::size_t first, std::size_t last,
                   const FusionPrices& prices)
      : cost{.prices = prices}, sequence_(sequence), first_(first), last_(last) {}

  /// Makes the last part's loops up to `depth` outer loops; the loop at `cut` is tiled, its inner
  /// loop innermost of them. Returns false if the parts cannot be fused this way.
  bool build(std::size_t depth, std::size_t cut, std::int64_t block) {
    take_reader(depth, cut, block);
    for (std::size_t k = last_; k-- > first_;) {
      if (!take_producer(k)) return false;
    }
    finish();
    return true;
  }

  Part part;
  FusionCost cost;

 private:
  // Renumbers a part's statements for this nest. Buffers get the sequence's indices; the part's
  // scratch follows them.
  Block imported(const Part& from) {
    LoopNest& nest = part.nest;
    const std::size_t loop_base = nest.loop_names.size(), local_base = nest.locals.size();
    // Loop names stay distinct: nests with equal text become one kernel.
    const bool is_reader = &from == &sequence_.parts[last_];
    const std::string mark = is_reader ? "" : concat("_", &from - &sequence_.parts[first_]);
    for (const std::string& name : from.nest.loop_names) nest.loop_names.push_back(name + mark);
    nest.locals.insert(nest.locals.end(), from.nest.locals.begin(), from.nest.locals.end());
    std::vector<std::size_t> ids;
    std::size_t given = 0;
    for (const NestBuffer& buffer : from.nest.buffers) {
      if (buffer.storage == StorageClass::Scratch) {
        ids.push_back(sequence_.buffers.size() + scratch_.size());
        scratch_.push_back(buffer);
        cost.local_bytes += local_bytes_of(buffer);
      } else {
        ids.push_back(from.buffers[given++]);
        names_.try_emplace(ids.back(), buffer.name);
      }
    }
    Block block = from.nest.body;
    ScalarRewriter([&](ScalarNode node) {
      if (node.kind == ScalarKind::Loop) return loop_scalar(node.id + loop_base);
      if (node.kind == ScalarKind::Extent) return nest.extent(from.nest.extents[node.id]);
      if (node.kind == ScalarKind::Local || node.kind == ScalarKind::Position)
        node.id += local_base;
      if (node.kind == ScalarKind::Load) node.id = ids[node.id];
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(block);
    for_each_statement(block, [&](Statement& statement) {
      switch (statement.kind) {
        case Statement::Kind::Loop:
          statement.id += loop_base;
          // A loop id has one extent in this nest; a part may reuse an id with several.
          if (extents_.contains(statement.id)) {
            const std::string name =
                concat(nest.loop_names[statement.id], "_", nest.loop_names.size());
            const std::size_t other = nest.new_loop(name);
            substitute_loop(statement.body, statement.id, loop_scalar(other));
            statement.id = other;
          }
          extents_[statement.id] = statement.extent;
          break;
        case Statement::Kind::Define:
        case Statement::Kind::Fold:
          statement.id += local_base;
          break;
        case Statement::Kind::Store:
        case Statement::Kind::Update:
          statement.id = ids[statement.id];
          break;
      }
    });
    return block;
  }

  void take_reader(std::size_t depth, std::size_t cut_at, std::int64_t block_extent) {
    const Part& reader = sequence_.parts[last_];
    part.nest.name = reader.nest.name;
    Kept kept = kept_of(imported(reader));
    const double whole_rows = rows_of(kept);
    for (std::size_t k = 0; k <= depth; ++k) extents_.erase(kept.loops[k].id);
    std::vector<Statement> inside;
    for (std::size_t k = 0; k < kept.loops.size(); ++k) {
      if (k <= depth && k != cut_at) {
        outer_loops_.push_back(std::move(kept.loops[k]));
      } else {
        inside.push_back(std::move(kept.loops[k]));
      }
    }
    kept.loops = std::move(inside);
    Statement& cut = kept.loops.front();
    Statement blocks = cut;
    const std::size_t inner = part.nest.new_loop(part.nest.loop_names[cut.id] + "i");
    part.nest.loop_names[cut.id] += "b";
    if (block_extent > 1) {
      const Affine position{{{cut.id, block_extent}, {inner, 1}}, 0};
      substitute_loop(kept.inner, cut.id, scalar_of(position));
      blocks.extent = ceil_div(cut.extent, block_extent);
      if (!(mod(cut.extent, block_extent) == Dim(0))) {
        cut.limit = left_of(cut.extent, block_extent, Affine{{{cut.id, block_extent}}, 0});
        uneven_ = cut.id;
      }
    }
    cut.id = inner;
    cut.extent = block_extent;
    extents_[cut.id] = cut.extent;
    outer_loops_.push_back(std::move(blocks));
    for (const Statement& loop : outer_loops_) {
      outer_.insert(loop.id);
      cost.passes *= times(loop);
      cost.sure_passes *= least_value(loop.extent);
    }
    add_stage(std::move(kept), whole_rows);
  }

  // Number of remaining positions from `start`, at most `count`: fewer in the last tile of a loop
  // whose extent is not a multiple of it.
  Scalar left_of(const Dim& extent, std::int64_t count, const Affine& start) {
    const Scalar left =
        binary_scalar(BinaryOp::Subtract, DType::I64, part.nest.extent(extent), scalar_of(start));
    return binary_scalar(BinaryOp::Minimum, DType::I64, integer_scalar(count), left);
  }

  // A symbolic extent may have several tiles, even if its size hint has one.
  static double times(const Statement& loop) {
    constexpr double kSeveral = 4;
    return std::max(size_hint(loop.extent), loop.extent.is_constant() ? 1.0 : kSeveral);
  }

  static double rows_of(const Kept& kept) {
    double rows = 1;
    for (std::size_t k = 0; k + 1 < kept.loops.size(); ++k) rows *= size_hint(kept.loops[k].extent);
    return rows;
  }

  void add_stage(Kept kept, double whole_rows) {
    Block block = std::move(kept.inner);
    for (std::size_t k = kept.loops.size(); k-- > 0;) {
      kept.loops[k].body = std::move(block);
      block = {std::move(kept.loops[k])};
    }
    TENON_ASSERT(block.size() == 1, "a stage is one loop");
    if (const auto sum = find_contraction(block)) {
      // Rows reuse the operand along columns. Attention heads have keys of their own and do not
      // count as rows.
      const auto moves = [](const Scalar& load, const Statement* loop) {
        return stride_along(load, loop->id) != Stride::Zero;
      };
      double rows = 1;
      for (std::size_t k = 0; k + 1 < sum->parallel.size(); ++k) {
        const bool is_shared =
            (!moves(sum->a, sum->parallel.back()) || !moves(sum->a, sum->parallel[k])) &&
            (!moves(sum->b, sum->parallel.back()) || !moves(sum->b, sum->parallel[k]));
        if (is_shared) rows *= size_hint(sum->parallel[k]->extent);
      }
      cost.count_rows(rows, whole_rows, cost.passes * work_of(block));
    }
    stages_.insert(stages_.begin(), std::move(block.front()));
  }

  // The interval of an axis that a load reads, as a function of the outer loops.
  struct Region {
    Affine start;
    std::int64_t count = 0;
  };
  std::optional<Region> region_of(const Scalar& index) const {
    const std::optional<Affine> line = affine_of(index);
    if (!line) return std::nullopt;
    Region region{{{}, line->start}, 1};
    for (const auto& [loop, step] : line->steps) {
      if (outer_.contains(loop)) {
        region.start.steps[loop] = step;
        continue;
      }
      const auto found = extents_.find(loop);
      if (found == extents_.end() || !found->second.is_constant()) return std::nullopt;
      const std::int64_t far = step * (found->second.constant() - 1);
      region.start.start += std::min<std::int64_t>(0, far);
      region.count += std::abs(far);
    }
    return region;
  }

  // Returns whether the interval is in bounds for all positions of the outer loops.
  bool stays_inside(const Region& region, const Dim& extent) const {
    if (!extent.is_constant()) return false;
    std::int64_t low = region.start.start, high = low + region.count - 1;
    for (const auto& [loop, step] : region.start.steps) {
      const auto found = std::find_if(outer_loops_.begin(), outer_loops_.end(),
                                      [&, id = loop](const Statement& s) { return s.id == id; });
      if (!found->extent.is_constant()) return false;
      const std::int64_t far = step * (found->extent.constant() - 1);
      (far < 0 ? low : high) += far;
    }
    return low >= 0 && high < extent.constant();
  }

  // The interval of an axis that one outer iteration reads of a producer's result.
  struct Need {
    bool is_whole = false;
    std::optional<Region> region;  // Without a value the axis is not read.

    void widen(const Need& other) {
      is_whole |= other.is_whole;
      if (!other.region) return;
      if (!region) {
        region = other.region;
      } else if (region->start.steps != other.region->start.steps) {
        is_whole = true;
      } else {
        const Region more = *other.region;
        const std::int64_t end =
            std::max(region->start.start + region->count, more.start.start + more.count);
        region->start.start = std::min(region->start.start, more.start.start);
        region->count = end - region->start.start;
      }
    }
  };
  Need need_of(std::size_t buffer, std::size_t axis) const {
    const Dims& dims = sequence_.buffers[buffer].dims;
    Need need;
    for_each_load(stages_, [&](const Scalar& load) {
      if (load->id != buffer) return;
      Need one;
      if (load->view == dims) one.region = region_of(load->args[axis]);
      const bool is_inside = load->bounds == Bounds::Inside;
      one.is_whole = !one.region || (!is_inside && !stays_inside(*one.region, dims[axis]));
      need.widen(one);
    });
    return need;
  }

  // A buffer that a producer writes, and the loops that index it.
  struct Handed {
    std::size_t buffer;
    std::vector<Scalar> indices;
    Dims view;
    std::size_t cuttable;  // Number of leading axes that are equal in view and buffer.
  };

  // Returns whether the block stores to the buffer, as the parts of a concat may in several nests.
  static bool is_written(const Block& block, std::size_t buffer) {
    return std::ranges::any_of(block, [&](const Statement& statement) {
      return (statement.kind == Statement::Kind::Store && statement.id == buffer) ||
             is_written(statement.body, buffer);
    });
  }

  // Returns the buffers that the part alone writes, each element once over all its loops; empty
  // otherwise.
  std::vector<Handed> handed_by(Kept& kept) const {
    std::vector<Handed> handed;
    bool is_plain = true;
    const auto is_kept = [&](std::size_t id) {
      return std::any_of(kept.loops.begin(), kept.loops.end(),
                         [&](const Statement& loop) { return loop.id == id; });
    };
    for_each_statement(kept.inner, [&](Statement& statement) {
      is_plain &= statement.kind != Statement::Kind::Update;
      const bool is_given = statement.id < sequence_.buffers.size();
      if (statement.kind != Statement::Kind::Store || !is_given) return;
      is_plain &= is_between(statement.id) && !is_written(stages_, statement.id);
      const Dims& dims = sequence_.buffers[statement.id].dims;
      std::size_t cuttable = 0;
      while (cuttable < dims.size() && cuttable < statement.view.size() &&
             statement.view[cuttable] == dims[cuttable]) {
        ++cuttable;
      }
      std::set<std::size_t> met;
      for (const Scalar& at : statement.indices) {
        if (at->kind == ScalarKind::Loop && is_kept(at->id)) is_plain &= met.insert(at->id).second;
      }
      is_plain &= met.size() == kept.loops.size();
      for (const Handed& other : handed) is_plain &= other.buffer != statement.id;
      handed.push_back({statement.id, statement.indices, statement.view, cuttable});
    });
    // The part's own reads must be at the positions of its writes.
    for_each_load(kept.inner, [&](const Scalar& load) {
      for (const Handed& own : handed) {
        if (load->id != own.buffer) continue;
        is_plain &= load->view == own.view;
        for (std::size_t axis = 0; is_plain && axis < own.indices.size(); ++axis) {
          is_plain &= &load->args[axis].node() == &own.indices[axis].node() ||
                      (load->args[axis]->kind == own.indices[axis]->kind &&
                       load->args[axis]->id == own.indices[axis]->id &&
                       load->args[axis]->integer == own.indices[axis]->integer);
        }
      }
    });
    return is_plain ? handed : std::vector<Handed>();
  }

  bool take_producer(std::size_t index) {
    const Part& producer = sequence_.parts[index];
    if (producer.is_indivisible) return false;
    Kept kept = kept_of(imported(producer));
    const double whole_rows = rows_of(kept);
    const std::vector<Handed> handed = handed_by(kept);
    if (handed.empty()) return false;
    std::map<std::size_t, Need> needs;  // By loop.
    for (const Statement& loop : kept.loops) needs[loop.id];
    for (const Handed& value : handed) {
      for (std::size_t axis = 0; axis < value.indices.size(); ++axis) {
        const Scalar& at = value.indices[axis];
        if (at->kind != ScalarKind::Loop || !needs.contains(at->id)) continue;
        if (axis < value.cuttable) {
          needs[at->id].widen(need_of(value.buffer, axis));
        } else {
          needs[at->id].is_whole = true;
        }
      }
    }
    double whole = 1;
    for (const Statement& loop : kept.loops) whole *= size_hint(loop.extent);
    std::map<std::size_t, Affine> starts;  // By loop.
    for (Statement& loop : kept.loops) {
      const Need& need = needs[loop.id];
      if (need.is_whole || !need.region) continue;
      const bool is_all = need.region->start == Affine{} && loop.extent == Dim(need.region->count);
      // The whole range is read, so the loop and any padding of the buffer stay unchanged.
      if (is_all) continue;
      starts[loop.id] = need.region->start;
      if (uneven_ && need.region->start.steps.contains(*uneven_)) {
        loop.limit = left_of(loop.extent, need.region->count, need.region->start);
      }
      loop.extent = need.region->count;
      extents_[loop.id] = loop.extent;
      Affine position = need.region->start;
      position.steps[loop.id] += 1;
      substitute_loop(kept.inner, loop.id, scalar_of(position));
    }
    count_producer(handed, kept, whole);
    for (const Handed& value : handed) make_local(value, kept, starts);
    if (kept.loops.empty()) {
      Statement once;
      once.id = part.nest.new_loop("once");
      once.extent = 1;
      once.is_independent = true;
      extents_[once.id] = once.extent;
      kept.loops.push_back(std::move(once));
    }
    add_stage(std::move(kept), whole_rows);
    return true;
  }

  // Adds the cost of a producer; `whole` is its iteration count before fusion.
  void count_producer(const std::vector<Handed>& handed, const Kept& kept, double whole) {
    double taken = cost.passes, bytes = 0;
    for (const Statement& loop : kept.loops) taken *= size_hint(loop.extent);
    for (const Handed& value : handed) {
      const NestSequence::Buffer& buffer = sequence_.buffers[value.buffer];
      bytes += bytes_of(buffer.dims, buffer.dtype);
    }
    const double again = std::max(0.0, taken - whole), work = work_of(kept.inner);
    cost.flops += work * (whole + again);
    cost.handed_bytes += bytes;
    cost.kernels += 1;
    cost.again_flops += again * (computes(kept.inner) ? work : kMovedFlops);
    cost.again_bytes += again * bytes / std::max(1.0, whole);
  }

  // Replaces the buffer by scratch for one outer iteration.
  void make_local(const Handed& value, Kept& kept, const std::map<std::size_t, Affine>& starts) {
    const NestSequence::Buffer& buffer = sequence_.buffers[value.buffer];
    NestBuffer local{"", buffer.dtype, buffer.dims, StorageClass::Scratch};
    std::vector<Affine> shifts(buffer.dims.size());
    Dims view = value.view;
    for (std::size_t axis = 0; axis < value.cuttable; ++axis) {
      const Scalar& at = value.indices[axis];
      const auto start = at->kind == ScalarKind::Loop ? starts.find(at->id) : starts.end();
      if (start == starts.end()) continue;
      shifts[axis] = start->second;
      local.dims[axis] = view[axis] = extents_.at(at->id);
    }
    const auto is_seen = [&](const ScalarNode& node) {
      return node.kind == ScalarKind::Load && node.id == value.buffer;
    };
    ScalarRewriter([&](ScalarNode node) {
      if (is_seen(node) && node.view == buffer.dims) {
        for (std::size_t axis = 0; axis < node.view.size(); ++axis) {
          const Affine& shift = shifts[axis];
          if (shift.steps.empty() && shift.start == 0) continue;
          Affine at = *affine_of(node.args[axis]);
          for (const auto& [loop, step] : shift.steps) at.steps.erase(loop);
          at.start -= shift.start;
          node.args[axis] = scalar_of(at);
        }
        node.view = local.dims;
      }
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(stages_);
    ScalarRewriter([&](ScalarNode node) {
      if (is_seen(node)) {
        node.args = value.indices;
        node.view = view;
      }
      return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
    }).apply(kept.inner);
    for_each_statement(kept.inner, [&](Statement& statement) {
      if (statement.kind != Statement::Kind::Store || statement.id != value.buffer) return;
      statement.indices = value.indices;
      statement.view = view;
    });
    cost.local_bytes += local_bytes_of(local);
    locals_.emplace(value.buffer, std::move(local));
  }

  // Returns whether only parts of this fused nest access the buffer.
  bool is_between(std::size_t buffer) const {
    if (sequence_.buffers[buffer].role != NestSequence::BufferRole::Temporary) return false;
    for (std::size_t k = 0; k < sequence_.parts.size(); ++k) {
      if (k >= first_ && k <= last_) continue;
      const std::vector<std::size_t>& used = sequence_.parts[k].buffers;
      if (std::find(used.begin(), used.end(), buffer) != used.end()) return false;
    }
    return true;
  }

  // Estimated arithmetic per iteration of the parallel loops.
  double work_of(const Block& block) const {
    double work = 0;
    for (const Statement& statement : block) {
      if (statement.kind == Statement::Kind::Loop) {
        work += size_hint(statement.extent) * work_of(statement.body);
      } else {
        constexpr int kFlopsOfDot = 8;
        work += statement.kind == Statement::Kind::Fold ? 2 : 1;
        if (statement.value.is_defined()) work += kFlopsOfDot * dp4a_count(statement.value);
      }
    }
    return work;
  }

  void finish() {
    // Bytes that every outer iteration rereads.
    std::map<std::size_t, double> again;
    for_each_load(stages_, [&](const Scalar& load) {
      if (load->id >= sequence_.buffers.size() || locals_.contains(load->id)) return;
      const auto size = static_cast<double>(info(load->dtype).storage_bytes);
      double bytes = size, line_share = 1;
      std::set<std::size_t> followed;
      for (std::size_t axis = 0; axis < load->view.size(); ++axis) {
        const std::optional<Region> region = region_of(load->args[axis]);
        const double extent = size_hint(load->view[axis]);
        bytes *= region ? std::min(extent, static_cast<double>(region->count)) : extent;
        if (!region) continue;
        for (const auto& [loop, step] : region->start.steps) followed.insert(loop);
        const bool is_last = axis + 1 == load->view.size();
        if (is_last && !region->start.steps.empty()) {
          line_share = std::min(extent, kLineBytes / size) / static_cast<double>(region->count);
        }
      }
      if (line_share > 1) count_lines(bytes, line_share);
      double others = 1;
      for (const Statement& loop : outer_loops_) {
        if (!followed.contains(loop.id)) others *= times(loop);
      }
      // With a single outer iteration one thread reads everything while the others wait.
      const double share = cost.passes > 1
                               ? (cost.passes - cost.passes / others) / (cost.passes - 1)
                           : followed.empty() ? 1
                                              : 0;
      again[load->id] = std::max(again[load->id], bytes * share);
    });
    for (const auto& [buffer, bytes] : again) cost.weight_bytes += bytes;
    cost.flops += cost.passes * work_of({stages_.back()});

    Block body = std::move(stages_);
    for (std::size_t k = outer_loops_.size(); k-- > 0;) {
      outer_loops_[k].body = std::move(body);
      body = {std::move(outer_loops_[k])};
    }
    part.nest.body = std::move(body);
    number_buffers();
    list_extents(part.nest);
  }

  // Adds the cost of partially used cache lines: an iteration that reads a few elements per row
  // still loads whole lines. They are reloaded if a cache does not hold them until the next
  // iteration, and read element by element otherwise.
  void count_lines(double bytes, double share) {
    const bool is_kept = bytes * share <= cost.prices.close_bytes;
    cost.line_bytes += cost.passes * bytes * (share - 1) * (is_kept ? cost.prices.close_share : 1);
  }

  void number_buffers() {
    std::set<std::size_t> used, written;
    for_each_load(part.nest.body, [&](const Scalar& load) { used.insert(load->id); });
    for_each_statement(part.nest.body, [&](Statement& statement) {
      const bool writes =
          statement.kind == Statement::Kind::Store || statement.kind == Statement::Kind::Update;
      if (!writes) return;
      used.insert(statement.id);
      written.insert(statement.id);
    });
    std::map<std::size_t, BufferUse> uses;
    for (const std::size_t id : used) {
      uses[id] = {part.nest.buffers.size(), {}, false};
      if (id >= sequence_.buffers.size()) {
        part.nest.buffers.push_back(scratch_[id - sequence_.buffers.size()]);
      } else if (const auto local = locals_.find(id); local != locals_.end()) {
        part.nest.buffers.push_back(local->second);
        part.nest.buffers.back().name = names_.at(id);
      } else {
        const NestSequence::Buffer& buffer = sequence_.buffers[id];
        part.nest.buffers.push_back(
            {names_.at(id), buffer.dtype, buffer.dims,
             written.contains(id) ? StorageClass::Result : StorageClass::Operand});
        part.buffers.push_back(id);
      }
    }
    renumber_buffers(part.nest, uses);
  }

  const NestSequence& sequence_;
  std::size_t first_, last_;
  std::vector<Statement> outer_loops_;
  std::set<std::size_t> outer_;
  std::optional<std::size_t> uneven_;   // The outer loop with a smaller last tile.
  std::map<std::size_t, Dim> extents_;  // by inner loop
  Block stages_;
  std::vector<NestBuffer> scratch_;  // Scratch of the original parts.
  // Fused intermediate buffers, by index in the sequence.
  std::map<std::size_t, NestBuffer> locals_;
  std::map<std::size_t, std::string> names_;
};

}  // namespace

bool computes(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& statement) {
    return statement.kind == Statement::Kind::Fold || computes(statement.body);
  });
}

std::vector<Dim> outer_extents(const Block& block) {
  std::vector<Dim> extents;
  for (const Block* inner = &block; const Statement* loop = sole_loop(*inner);
       inner = &loop->body) {
    extents.push_back(loop->extent);
  }
  return extents;
}

std::optional<FusedNest> fused_nest(const NestSequence& sequence, std::size_t first,
                                    std::size_t last, const FusionTile& cut,
                                    const FusionPrices& prices) {
  FusedNestBuilder fused(sequence, first, last, prices);
  if (!fused.build(cut.depth, cut.cut, cut.block)) return std::nullopt;
  return FusedNest{std::move(fused.part), fused.cost};
}

}  // namespace tenon::nests
