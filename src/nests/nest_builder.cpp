#include "nests/nest_builder.h"

#include "base/error.h"
#include "expr/names.h"
#include "nests/index_map.h"
#include "nests/stage_writer.h"
#include "ops/families/scatters.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace tenon::nests {
namespace {

using Buffer = NestSequence::Buffer;
using BufferRole = NestSequence::BufferRole;

class NestBuilder {
 public:
  NestBuilder(const std::string& name, const std::vector<Expr>& results,
              std::int64_t min_shared_iterations)
      : name_(name), results_(results), min_shared_iterations_(min_shared_iterations) {}

  NestSequence run() {
    for (std::size_t k = 0; k < results_.size(); ++k) {
      if (results_[k].is_defined()) add_result(k);
    }
    group_stages();
    note_groups();
    for (const Group& group : groups_) build(group);
    return std::move(sequence_);
  }

 private:
  struct Group {
    std::vector<std::size_t> stages;
    std::size_t shared = 0;  // Number of shared outer loops.
    std::unordered_map<std::size_t, std::size_t> written =
        {};  // Written buffers, each with a stage that writes it.
  };
  // Beyond this number of stages, one large kernel compiles more slowly than separate kernels.
  static constexpr std::size_t kMostParts = 64;

  std::size_t add_buffer(BufferRole role, std::size_t index, DType dtype, Dims dims) {
    if (!is_compilable(dtype)) {
      throw Error("kernels do not compute with this element type", ErrorKind::Unsupported)
          .got(dtype);
    }
    // Values between stages are not rounded to narrow floats, as in the reference.
    if (role == BufferRole::Temporary && info(dtype).arithmetic == Arithmetic::F32)
      dtype = DType::F32;
    sequence_.buffers.push_back({role, index, dtype, std::move(dims)});
    return sequence_.buffers.size() - 1;
  }

  // --- stages -----------------------------------------------------------------------------------

  void add_result(std::size_t index) {
    Expr expr = results_[index];
    const std::size_t buffer = add_buffer(BufferRole::Result, index, expr.dtype(), expr.dims());
    // A result without elements only needs its checks.
    if (std::find(expr.dims().begin(), expr.dims().end(), Dim(0)) != expr.dims().end()) {
      for (const Expr& scatter : scatters_in(expr)) collect(scatter);
      return;
    }
    // A reshape preserves element order, so the stage of its operand writes the result directly.
    while (expr.node().kind == ExprKind::Reshape && !places_.contains(&expr.node()))
      expr = expr.node().args[0];
    if (is_stage(expr.node().kind) && !places_.contains(&expr.node())) {
      add_stage(expr, buffer);
    } else {
      collect(expr);
      stages_.push_back({expr, buffer, expr.dims()});
      stages_.back().is_one_of_many = results_.size() > kMostParts;
    }
    places_.try_emplace(&expr.node(), StageResult{buffer, stages_.size()});
  }

  // Adds every stage that `root` needs. Iterative: expressions of long groups are deep.
  void collect(const Expr& root) {
    std::vector<std::pair<Expr, bool>> work{{root, false}};
    while (!work.empty()) {
      auto [expr, is_ready] = work.back();
      work.pop_back();
      const ExprNode& node = expr.node();
      if (places_.contains(&node) || (!is_ready && !visited_.insert(&node).second)) continue;
      if (!is_ready) {
        work.emplace_back(expr, true);
        if (node.kind == ExprKind::Operand) continue;
        mark_factors(node);
        for (const Expr& arg : node.args) work.emplace_back(arg, false);
        continue;
      }
      if (node.kind == ExprKind::Operand) {
        const auto [found, is_new] = operands_.try_emplace(node.operand, 0);
        if (is_new)
          found->second = add_buffer(BufferRole::Operand, node.operand, node.dtype, node.dims);
        places_.emplace(&node, StageResult{found->second, 0});
      } else if (is_stage(node.kind)) {
        add_stage(expr, add_buffer(BufferRole::Temporary, 0, node.dtype, node.dims));
      } else if (node.kind == ExprKind::Read && must_be_whole(node)) {
        make_whole(node.args[0]);
      }
    }
  }

  // A read with a fill, or with unchecked data-dependent coordinates, needs its source in a buffer:
  // an expression has no value outside of its shape.
  bool must_be_whole(const ExprNode& read) const {
    const Expr* source = &read.args[0];
    while (source->node().kind == ExprKind::Reshape) source = &source->node().args[0];
    if (places_.contains(&source->node())) return false;
    if (read.has_fill || needs_check(read)) return true;
    if (factors_.contains(&read) && !is_transposed_operand(*source)) return true;
    return is_window(read) && holds_stage(*source);
  }

  // Matches an operand with permuted axes: it needs no arithmetic, and packing handles the order.
  static bool is_transposed_operand(const Expr& expr) {
    const ExprNode* node = &expr.node();
    while (node->kind == ExprKind::Read && !node->has_fill &&
           std::all_of(node->args.begin() + 1, node->args.end(), [](const Expr& coordinate) {
             return coordinate.node().kind == ExprKind::Index;
           })) {
      node = &node->args[0].node();
    }
    return node->kind == ExprKind::Operand;
  }

  // Overlapping windows: elements are read repeatedly, at computed coordinates.
  static bool is_window(const ExprNode& read) {
    const Expr& source = read.args[0];
    const bool repeats = provably_at_most(product(source.dims()) + Dim(1), product(read.dims));
    return repeats &&
           std::any_of(read.args.begin() + 1, read.args.end(), [](const Expr& coordinate) {
             return coordinate.node().kind == ExprKind::Binary;
           });
  }

  // Returns whether a stage lies between the expression and its operands.
  bool holds_stage(const Expr& root) const {
    std::set<const ExprNode*> seen;
    std::vector<const ExprNode*> work{&root.node()};
    while (!work.empty()) {
      const ExprNode* node = work.back();
      work.pop_back();
      if (is_stage(node->kind)) return true;
      if (node->kind == ExprKind::Operand || !seen.insert(node).second) continue;
      for (const Expr& arg : node->args) work.push_back(&arg.node());
    }
    return false;
  }

  // Factors of a contraction are read repeatedly, so computed factors are materialized.
  void mark_factors(const ExprNode& sum) {
    if (!is_contraction_expr(sum)) return;
    for (const Expr& factor : sum.args[0].node().args) {
      const Expr* expr = &factor;
      while (expr->node().kind == ExprKind::Cast) expr = &expr->node().args[0];
      if (expr->node().kind == ExprKind::Read) factors_.insert(&expr->node());
    }
  }

  void make_whole(Expr expr) {
    while (expr.node().kind == ExprKind::Reshape) expr = expr.node().args[0];
    const std::size_t buffer = add_buffer(BufferRole::Temporary, 0, expr.dtype(), expr.dims());
    stages_.push_back({expr, buffer, expr.dims()});
    places_.emplace(&expr.node(), StageResult{buffer, stages_.size()});
  }

  void add_stage(const Expr& expr, std::size_t buffer) {
    const ExprNode& node = expr.node();
    if (info(node.dtype).arithmetic == Arithmetic::F32) mark_factors(node);
    for (const Expr& arg : node.args) collect(arg);
    if (node.kind == ExprKind::Concat) {
      Dim offset = 0;
      for (const Expr& part : node.args) {
        stages_.push_back(
            {part, buffer, node.dims, node.axes[0], offset, node.args.size() > kMostParts});
        offset = offset + part.dims()[node.axes[0]];
      }
    } else if (node.kind == ExprKind::Scatter) {
      stages_.push_back({node.args[0], buffer, node.dims});  // The base first.
      stages_.push_back({expr, buffer, node.dims});
    } else {
      stages_.push_back({expr, buffer, node.dims});
    }
    places_.emplace(&node, StageResult{buffer, stages_.size()});
  }

  // --- groups -----------------------------------------------------------------------------------

  // Independent loops of a stage, outermost first; a loop's id is its axis.
  static std::vector<std::size_t> outer_loops(const NestStage& stage) {
    const ExprNode& node = stage.expr.node();
    std::vector<std::size_t> loops;
    // Updates may collide, so they run in sequence.
    if (node.kind == ExprKind::Scatter) return loops;
    for (std::size_t axis = 0; axis < node.dims.size(); ++axis) {
      if (node.kind == ExprKind::Scan && axis == node.axes[0]) continue;
      if (node.dims[axis] != Dim(1)) loops.push_back(axis);
    }
    return loops;
  }

  void group_stages() {
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      LoopNest unused;
      std::set<std::size_t>& touched = touched_.emplace_back();
      touched.insert(stages_[k].buffer);
      for_each_load(writer_.body(unused, k), [&](const Scalar& load) { touched.insert(load->id); });
      stages_[k].loops = outer_loops(stages_[k]);
      if (groups_.empty() || !join(groups_.back(), k))
        groups_.push_back({{k}, stages_[k].loops.size()});
      groups_.back().written.try_emplace(stages_[k].buffer, k);
    }
  }

  void note_groups() {
    touching_groups_.resize(sequence_.buffers.size());
    for (const Group& group : groups_) {
      std::set<std::size_t> touched;
      for (std::size_t k : group.stages) touched.insert(touched_[k].begin(), touched_[k].end());
      for (std::size_t buffer : touched) ++touching_groups_[buffer];
    }
  }

  // Adds the stage to the group if they share outer loops within which all data between them is
  // local to one iteration.
  bool join(Group& group, std::size_t k) {
    const NestStage& first = stages_[group.stages.front()];
    const NestStage& stage = stages_[k];
    if (stage.is_one_of_many || first.is_one_of_many) return false;
    std::size_t shared = 0;
    while (shared < group.shared && shared < stage.loops.size() &&
           first.loops[shared] == stage.loops[shared] &&
           first.expr.dims()[first.loops[shared]] == stage.expr.dims()[stage.loops[shared]]) {
      ++shared;
    }
    if (const auto other = group.written.find(stage.buffer); other != group.written.end()) {
      if (stages_[other->second].view != stage.view) return false;
      // The parts of a concat differ along its axis, so that loop cannot be shared.
      if (stage.view[stage.axis] != stage.expr.dims()[stage.axis]) {
        const auto end = stage.loops.begin() + static_cast<std::ptrdiff_t>(shared);
        shared = static_cast<std::size_t>(std::find(stage.loops.begin(), end, stage.axis) -
                                          stage.loops.begin());
      }
    }
    if (shared == 0) return false;
    shared = aligned_loops(k, group, shared);
    if (shared == 0) return false;
    // One iteration of the shared loops runs on one thread. With few of them, as in a symbolic
    // batch, stages stay apart unless they share all loops of the first stage or all but one of
    // their own.
    const bool shares_rows = shared == first.loops.size() || shared + 1 >= stage.loops.size();
    if (!shares_rows && least_iterations(first, shared) < min_shared_iterations_) return false;
    // Contractions get register tiles of their own: only an elementwise epilogue joins.
    if (is_contraction(stage) || (is_contraction(first) && shared < first.loops.size()))
      return false;
    group.shared = shared;
    group.stages.push_back(k);
    return true;
  }

  // Returns how often the outermost loops of a stage run together, with symbols at their least; at
  // least `min_shared_iterations_` if more.
  std::int64_t least_iterations(const NestStage& stage, std::size_t loops) const {
    std::int64_t iterations = 1;
    for (std::size_t k = 0; k < loops && iterations < min_shared_iterations_; ++k)
      iterations *= std::max<std::int64_t>(1, stage.expr.dims()[stage.loops[k]].range().lo);
    return iterations;
  }

  // A sum of squares, as in a variance, has no operand reuse that tiles could exploit.
  static bool is_contraction(const NestStage& stage) {
    if (!is_contraction_expr(stage.expr.node())) return false;
    const std::vector<Expr>& factors = stage.expr.node().args[0].node().args;
    return &factors[0].node() != &factors[1].node();
  }

  // Returns how many of the first `shared` loops index the group's written buffers in every access.
  std::size_t aligned_loops(std::size_t index, const Group& group, std::size_t shared) {
    const NestStage& stage = stages_[index];
    LoopNest nest;
    const Block body = writer_.body(nest, index);
    const auto visit = [&](const Scalar& load) {
      const std::size_t buffer = load->id;
      if (!group.written.contains(buffer)) return;
      for (std::size_t k = 0; k < shared; ++k) {
        const std::size_t axis = stage.loops[k];
        const bool follows =
            axis < load->view.size() && load->view == sequence_.buffers[buffer].dims &&
            load->args[axis]->kind == ScalarKind::Loop && load->args[axis]->id == axis;
        if (!follows) shared = k;
      }
    };
    for_each_load(body, visit);
    return shared;
  }

  bool is_updated(const Group& group, std::size_t buffer) const {
    return std::any_of(group.stages.begin(), group.stages.end(), [&](std::size_t k) {
      return stages_[k].buffer == buffer && stages_[k].expr.node().kind == ExprKind::Scatter;
    });
  }
  void build(const Group& group);

  const std::string& name_;
  const std::vector<Expr>& results_;
  const std::int64_t min_shared_iterations_;
  NestSequence sequence_;
  StageResults places_;
  std::unordered_map<std::size_t, std::size_t> operands_;
  std::set<const ExprNode*> visited_;
  std::set<const ExprNode*> factors_;  // Reads whose source must be a buffer.
  std::vector<NestStage> stages_;
  std::vector<Group> groups_;
  std::vector<std::set<std::size_t>> touched_;  // By stage: buffers that it accesses.
  std::vector<std::size_t> touching_groups_;    // By buffer: number of groups that access it.
  StageWriter writer_{stages_, places_, sequence_.buffers};
};

void NestBuilder::build(const Group& group) {
  NestSequence::NestCall part;
  LoopNest& nest = part.nest;
  nest.name = concat(name_, sequence_.parts.empty() ? "" : concat("_", sequence_.parts.size()));
  std::size_t rank = 0;
  for (std::size_t k : group.stages) rank = std::max(rank, stages_[k].expr.rank());
  while (nest.loop_names.size() < rank) nest.new_loop(concat("i", nest.loop_names.size()));
  Block shared_body;
  for (std::size_t k : group.stages) {
    const NestStage& stage = stages_[k];
    Block block = writer_.body(nest, k);
    for (std::size_t l = stage.loops.size(); l-- > group.shared;) {
      const std::size_t axis = stage.loops[l];
      block = {loop_statement(axis, stage.expr.dims()[axis], std::move(block), true)};
    }
    for (Statement& statement : block) shared_body.push_back(std::move(statement));
  }
  const NestStage& first = stages_[group.stages.front()];
  for (std::size_t l = group.shared; l-- > 0;) {
    shared_body = {loop_statement(first.loops[l], first.expr.dims()[first.loops[l]],
                                  std::move(shared_body), true)};
  }
  nest.body = std::move(shared_body);

  // Buffers are renumbered for this nest; a buffer local to it shrinks to one iteration's part.
  std::set<std::size_t> inside;
  for (std::size_t k : group.stages) inside.insert(touched_[k].begin(), touched_[k].end());
  const std::vector<std::size_t> shared_axes(
      first.loops.begin(), first.loops.begin() + static_cast<std::ptrdiff_t>(group.shared));
  // A load with a bounds check needs coordinates even for a single element.
  std::set<std::size_t> guarded;
  for_each_load(nest.body, [&](const Scalar& load) {
    if (load->bounds != Bounds::Inside) guarded.insert(load->id);
  });
  std::map<std::size_t, BufferUse> uses;
  for (std::size_t id : inside) {
    const Buffer& buffer = sequence_.buffers[id];
    const bool is_own = buffer.role == BufferRole::Temporary && touching_groups_[id] == 1;
    Dims dims = buffer.dims;
    if (is_own) {
      for (std::size_t axis : shared_axes) dims[axis] = 1;
      if (product(dims) == Dim(1) && !is_updated(group, id) && !guarded.contains(id)) {
        uses[id] = {nest.new_local(buffer.dtype), {}, true};
        continue;
      }
    } else {
      part.buffers.push_back(id);
    }
    // A temporary of an earlier nest is read-only here.
    const bool is_written = group.written.contains(id);
    const StorageClass storage = is_own       ? StorageClass::Scratch
                                 : is_written ? StorageClass::Result
                                              : StorageClass::Operand;
    const std::string_view letter = buffer.role == BufferRole::Operand  ? "x"
                                    : buffer.role == BufferRole::Result ? "y"
                                                                        : "m";
    uses[id] = {nest.buffers.size(), is_own ? shared_axes : std::vector<std::size_t>(), false};
    nest.buffers.push_back(
        {concat(letter, buffer.role == BufferRole::Temporary ? id : buffer.index), buffer.dtype,
         std::move(dims), storage});
  }
  renumber_buffers(nest, uses);
  list_extents(nest);
  sequence_.parts.push_back(std::move(part));
}

}  // namespace

bool is_compilable(DType dtype) { return dtype != DType::String && !is_complex(dtype); }

NestSequence build_nests(const std::string& name, const std::vector<Expr>& results,
                         std::int64_t min_shared_iterations) {
  NestSequence sequence = NestBuilder(name, results, min_shared_iterations).run();
  for (NestSequence::NestCall& part : sequence.parts) drop_empty_loops(part.nest.body);
  std::erase_if(sequence.parts,
                [](const NestSequence::NestCall& part) { return part.nest.body.empty(); });
  return sequence;
}

}  // namespace tenon::nests
