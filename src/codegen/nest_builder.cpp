#include "codegen/nest_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "codegen/index_map.h"

namespace tenon::codegen {
namespace {

using Buffer = NestSequence::Buffer;
using Role = NestSequence::Role;

bool is_stage(ExprKind kind) {
  return kind == ExprKind::Reduce || kind == ExprKind::Scan || kind == ExprKind::Scatter ||
         kind == ExprKind::Concat;
}

bool is_arg(Reduction reduction) {
  return reduction == Reduction::ArgMax || reduction == Reduction::ArgMin ||
         reduction == Reduction::ArgMaxLast || reduction == Reduction::ArgMinLast;
}

// Part of a buffer that one set of loops writes.
struct Stage {
  Expr expr;           // what to compute: a reduce, scan or scatter node, or anything element by element
  std::size_t buffer;  // where it goes
  Dims view;           // the extents under which the buffer is seen
  std::size_t axis = 0;
  Dim offset = 0;      // along `axis`: for the parts of a concat
  // The loops around all of it, by position: one for each axis of `expr` whose extent is not 1.
  std::vector<std::size_t> loops = {};
};

class Builder {
 public:
  Builder(const std::string& name, const std::vector<Expr>& results) : name_(name), results_(results) {}

  NestSequence run() {
    for (std::size_t k = 0; k < results_.size(); ++k) {
      if (results_[k].is_defined()) add_result(k);
    }
    group_stages();
    for (const Group& group : groups_) build(group);
    return std::move(sequence_);
  }

 private:
  struct Group {
    std::vector<std::size_t> stages;
    std::size_t shared = 0;  // loops around all of them
  };
  struct Place {
    std::size_t buffer;
    std::size_t ready;  // the first stage that can read it
  };

  std::size_t add_buffer(Role role, std::size_t index, DType dtype, Dims dims) {
    if (!is_compilable(dtype)) {
      throw Error("kernels do not compute with this element type", ErrorKind::Unsupported).got(dtype);
    }
    sequence_.buffers.push_back({role, index, dtype, std::move(dims)});
    return sequence_.buffers.size() - 1;
  }

  // --- stages -----------------------------------------------------------------------------------

  void add_result(std::size_t index) {
    Expr expr = results_[index];
    const std::size_t buffer = add_buffer(Role::Result, index, expr.dtype(), expr.dims());
    // Elements keep their order under a reshape: the stage below writes the result itself.
    while (expr.node().kind == ExprKind::Reshape && !places_.contains(&expr.node())) expr = expr.node().args[0];
    if (is_stage(expr.node().kind) && !places_.contains(&expr.node())) {
      add_stage(expr, buffer);
    } else {
      collect(expr);
      stages_.push_back({expr, buffer, expr.dims()});
    }
    places_.try_emplace(&expr.node(), Place{buffer, stages_.size()});
  }

  // Makes every stage that `root` needs. Works with a list: expressions of long groups are deep.
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
        if (is_contraction(node)) mark_factors(node);
        for (const Expr& arg : node.args) work.emplace_back(arg, false);
        continue;
      }
      if (node.kind == ExprKind::Operand) {
        const auto [found, is_new] = operands_.try_emplace(node.operand, 0);
        if (is_new) found->second = add_buffer(Role::Operand, node.operand, node.dtype, node.dims);
        places_.emplace(&node, Place{found->second, 0});
      } else if (is_stage(node.kind)) {
        add_stage(expr, add_buffer(Role::Temporary, 0, node.dtype, node.dims));
      } else if (node.kind == ExprKind::Read && must_be_whole(node)) {
        make_whole(node.args[0]);
      }
    }
  }

  // Outside its shape an expression has no value, and a coordinate that data decides needs checking:
  // both ask for a buffer to read from.
  bool must_be_whole(const ExprNode& read) const {
    const Expr* source = &read.args[0];
    while (source->node().kind == ExprKind::Reshape) source = &source->node().args[0];
    if (places_.contains(&source->node())) return false;
    return read.has_fill || factors_.contains(&read) || reads_data(read);
  }

  // A factor of a sum of products is read over and over: what is computed there is computed once.
  void mark_factors(const ExprNode& sum) {
    for (const Expr& factor : sum.args[0].node().args) {
      const Expr* expr = &factor;
      while (expr->node().kind == ExprKind::Cast) expr = &expr->node().args[0];
      if (expr->node().kind == ExprKind::Read) factors_.insert(&expr->node());
    }
  }

  static bool reads_data(const ExprNode& read) {
    std::set<const ExprNode*> seen;
    std::vector<const ExprNode*> work;
    for (std::size_t k = 1; k <= read.args[0].rank(); ++k) work.push_back(&read.args[k].node());
    while (!work.empty()) {
      const ExprNode* node = work.back();
      work.pop_back();
      if (!seen.insert(node).second) continue;
      if (node->kind == ExprKind::Operand || is_stage(node->kind)) return true;
      for (const Expr& arg : node->args) work.push_back(&arg.node());
    }
    return false;
  }

  void make_whole(Expr expr) {
    while (expr.node().kind == ExprKind::Reshape) expr = expr.node().args[0];
    const std::size_t buffer = add_buffer(Role::Temporary, 0, expr.dtype(), expr.dims());
    stages_.push_back({expr, buffer, expr.dims()});
    places_.emplace(&expr.node(), Place{buffer, stages_.size()});
  }

  void add_stage(const Expr& expr, std::size_t buffer) {
    const ExprNode& node = expr.node();
    for (const Expr& arg : node.args) collect(arg);
    if (node.kind == ExprKind::Concat) {
      Dim offset = 0;
      for (const Expr& part : node.args) {
        stages_.push_back({part, buffer, node.dims, node.axes[0], offset});
        offset = offset + part.dims()[node.axes[0]];
      }
    } else if (node.kind == ExprKind::Scatter) {
      stages_.push_back({node.args[0], buffer, node.dims});  // the base first
      stages_.push_back({expr, buffer, node.dims});
    } else {
      stages_.push_back({expr, buffer, node.dims});
    }
    places_.emplace(&node, Place{buffer, stages_.size()});
  }

  // --- groups -----------------------------------------------------------------------------------

  // Loops of a stage outside of everything it does, outermost first; a loop's id is its axis.
  static std::vector<std::size_t> outer_loops(const Stage& stage) {
    const ExprNode& node = stage.expr.node();
    std::vector<std::size_t> loops;
    if (node.kind == ExprKind::Scatter) return loops;  // updates may meet: one after another
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
      for_each_load(stage_body(unused, stages_[k]), [&](const Scalar& load) { touched.insert(load->id); });
      stages_[k].loops = outer_loops(stages_[k]);
      if (groups_.empty() || !join(groups_.back(), k)) groups_.push_back({{k}, stages_[k].loops.size()});
    }
  }

  // Takes the stage into the group if they share loops within which all that flows between is one
  // iteration's own.
  bool join(Group& group, std::size_t k) {
    const Stage& first = stages_[group.stages.front()];
    const Stage& stage = stages_[k];
    std::size_t shared = 0;
    while (shared < group.shared && shared < stage.loops.size() && first.loops[shared] == stage.loops[shared] &&
           first.expr.dims()[first.loops[shared]] == stage.expr.dims()[stage.loops[shared]]) {
      ++shared;
    }
    std::set<std::size_t> written;
    for (std::size_t other : group.stages) {
      written.insert(stages_[other].buffer);
      if (stages_[other].buffer == stage.buffer && stages_[other].view != stage.view) return false;
      // The parts of a concat differ along its axis: that loop is not the same loop.
      if (stages_[other].buffer == stage.buffer && stage.view[stage.axis] != stage.expr.dims()[stage.axis]) {
        while (shared > 0 && std::find(stage.loops.begin(), stage.loops.begin() + static_cast<std::ptrdiff_t>(shared),
                                       stage.axis) != stage.loops.begin() + static_cast<std::ptrdiff_t>(shared)) {
          --shared;
        }
      }
    }
    if (shared == 0) return false;
    shared = aligned_loops(stage, written, shared);
    if (shared == 0) return false;
    // Sums of products are worth tiles of their own: only what follows them element by element joins.
    if (is_contraction(stage) && group.stages.size() > 0) return false;
    for (std::size_t other : group.stages) {
      if (is_contraction(stages_[other]) && shared < stages_[other].loops.size()) return false;
    }
    group.shared = shared;
    group.stages.push_back(k);
    return true;
  }

  static bool is_contraction(const Stage& stage) { return is_contraction(stage.expr.node()); }
  static bool is_contraction(const ExprNode& node) {
    if (node.kind != ExprKind::Reduce || node.reduction != Reduction::Sum) return false;
    const ExprNode& body = node.args[0].node();
    return body.kind == ExprKind::Binary && body.binary == BinaryOp::Multiply;
  }

  // How many of the first `shared` loops every access to the written buffers follows.
  std::size_t aligned_loops(const Stage& stage, const std::set<std::size_t>& written, std::size_t shared) {
    LoopNest nest;
    Block body = stage_body(nest, stage);
    const auto visit = [&](const Scalar& load) {
      const std::size_t buffer = load->id;
      if (!written.contains(buffer)) return;
      for (std::size_t k = 0; k < shared; ++k) {
        const std::size_t axis = stage.loops[k];
        const bool follows = axis < load->view.size() && load->view == sequence_.buffers[buffer].dims &&
                             load->args[axis]->kind == ScalarKind::Loop && load->args[axis]->id == axis;
        if (!follows) shared = k;
      }
    };
    for_each_load(body, visit);
    return shared;
  }

  // --- code of a stage --------------------------------------------------------------------------

  // The element of an expression at a position, in the loops of `nest`.
  Scalar element(LoopNest& nest, const Expr& expr, const std::vector<Scalar>& at);
  Scalar load(LoopNest& nest, const Place& place, const Dims& dims, const std::vector<Scalar>& at);
  Scalar read(LoopNest& nest, const ExprNode& node, const std::vector<Scalar>& at);

  std::vector<Scalar> broadcast_position(LoopNest& nest, const Dims& from, const Dims& to,
                                         const std::vector<Scalar>& at) {
    std::vector<Scalar> inner;
    const std::size_t skipped = from.size() - to.size();
    for (std::size_t axis = 0; axis < to.size(); ++axis) {
      const Dim& extent = to[axis];
      if (extent == Dim(1)) {
        inner.push_back(integer_scalar(0));
      } else if (extent == from[skipped + axis] || extent.range().lo > 1) {
        inner.push_back(at[skipped + axis]);
      } else {  // may turn out to be 1 when it runs
        const Scalar is_one = binary_scalar(BinaryOp::Equal, DType::Bool, nest.extent(extent), integer_scalar(1));
        inner.push_back(select_scalar(is_one, integer_scalar(0), at[skipped + axis]));
      }
    }
    return inner;
  }

  Block stage_body(LoopNest& nest, const Stage& stage);
  Block reduce_body(LoopNest& nest, const Stage& stage, const std::vector<Scalar>& at);
  Block scan_body(LoopNest& nest, const Stage& stage, const std::vector<Scalar>& at);
  Block scatter_body(LoopNest& nest, const Stage& stage);

  static Statement loop(std::size_t id, const Dim& extent, Block body, bool is_independent = false) {
    Statement statement;
    statement.is_independent = is_independent;
    statement.id = id;
    statement.extent = extent;
    statement.body = std::move(body);
    return statement;
  }
  static Statement define(std::size_t local, Scalar value) {
    Statement statement;
    statement.kind = Statement::Kind::Define;
    statement.id = local;
    statement.value = std::move(value);
    return statement;
  }
  Statement store(const Stage& stage, std::vector<Scalar> at, Scalar value, LoopNest& nest) {
    if (stage.offset != Dim(0)) {
      at[stage.axis] = binary_scalar(BinaryOp::Add, DType::I64, at[stage.axis], nest.extent(stage.offset));
    }
    Statement statement;
    statement.kind = Statement::Kind::Store;
    statement.id = stage.buffer;
    statement.indices = std::move(at);
    statement.view = stage.view;
    statement.value = std::move(value);
    return statement;
  }

  bool is_updated(const Group& group, std::size_t buffer) const {
    return std::any_of(group.stages.begin(), group.stages.end(), [&](std::size_t k) {
      return stages_[k].buffer == buffer && stages_[k].expr.node().kind == ExprKind::Scatter;
    });
  }
  void build(const Group& group);

  const std::string& name_;
  const std::vector<Expr>& results_;
  NestSequence sequence_;
  std::unordered_map<const ExprNode*, Place> places_;
  std::unordered_map<std::size_t, std::size_t> operands_;
  std::set<const ExprNode*> visited_;
  std::set<const ExprNode*> factors_;  // reads whose source must be a buffer
  std::vector<Stage> stages_;
  std::size_t current_ = 0;  // the stage that is being written down
  std::vector<Group> groups_;
  std::vector<std::set<std::size_t>> touched_;  // by stage: the buffers it reads and writes
  // Elements already written down, so that what is shared in the expression is shared in the code.
  std::map<std::pair<const ExprNode*, std::vector<const ScalarNode*>>, Scalar> elements_;
  std::vector<std::vector<Scalar>> kept_positions_;  // keeps the keys' scalars alive
};

Scalar Builder::load(LoopNest& nest, const Place& place, const Dims& dims, const std::vector<Scalar>& at) {
  ScalarNode node;
  node.kind = ScalarKind::Load;
  node.dtype = sequence_.buffers[place.buffer].dtype;
  node.id = place.buffer;
  node.view = dims;
  node.args = at;
  (void)nest;
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

Scalar Builder::read(LoopNest& nest, const ExprNode& node, const std::vector<Scalar>& at) {
  const Expr& source = node.args[0];
  std::vector<Scalar> coordinates;
  for (std::size_t k = 0; k < source.rank(); ++k) {
    const Expr& coordinate = node.args[k + 1];
    coordinates.push_back(element(nest, coordinate, broadcast_position(nest, node.dims, coordinate.dims(), at)));
  }
  const bool is_checked = !node.has_fill && reads_data(node);
  if (!node.has_fill && !is_checked) return element(nest, source, coordinates);
  const Expr* whole = &source;
  while (!places_.contains(&whole->node())) whole = &whole->node().args[0];  // under reshapes
  ScalarNode load_node;
  load_node.kind = ScalarKind::Load;
  load_node.dtype = source.dtype();
  load_node.id = places_.at(&whole->node()).buffer;
  load_node.view = source.dims();
  load_node.bounds = is_checked ? Bounds::Checked : Bounds::Fill;
  load_node.args = std::move(coordinates);
  if (node.has_fill) {
    const Expr& fill = node.args.back();
    load_node.args.push_back(element(nest, fill, broadcast_position(nest, node.dims, fill.dims(), at)));
  }
  return Scalar(std::make_shared<const ScalarNode>(std::move(load_node)));
}

Scalar Builder::element(LoopNest& nest, const Expr& expr, const std::vector<Scalar>& at) {
  const ExprNode& node = expr.node();
  std::vector<const ScalarNode*> key;
  for (const Scalar& index : at) key.push_back(&index.node());
  const auto found = elements_.find({&node, key});
  if (found != elements_.end()) return found->second;

  const auto arg = [&](std::size_t k) {
    const Expr& inner = node.args[k];
    return element(nest, inner, broadcast_position(nest, node.dims, inner.dims(), at));
  };
  Scalar result;
  if (const auto place = places_.find(&node); place != places_.end() && place->second.ready <= current_) {
    result = load(nest, place->second, node.dims, at);
  } else {
    switch (node.kind) {
      case ExprKind::Literal: result = literal_scalar(node.dtype, node.real, node.integer); break;
      case ExprKind::Extent: result = nest.extent(node.extent); break;
      case ExprKind::Index: result = at[node.axes[0]]; break;
      case ExprKind::Unary: result = unary_scalar(node.unary, node.dtype, arg(0)); break;
      case ExprKind::Binary: result = binary_scalar(node.binary, node.dtype, arg(0), arg(1)); break;
      case ExprKind::Select: result = select_scalar(arg(0), arg(1), arg(2)); break;
      case ExprKind::Cast: result = cast_scalar(arg(0), node.dtype); break;
      case ExprKind::Read: result = read(nest, node, at); break;
      case ExprKind::Reshape:
        result = element(nest, node.args[0], reshaped_position(nest, node.dims, node.args[0].dims(), at));
        break;
      default: TENON_ASSERT(false, "stages have buffers before they are read");
    }
  }
  if (!is_compilable(node.dtype)) {
    throw Error("kernels do not compute with this element type", ErrorKind::Unsupported).got(node.dtype);
  }
  kept_positions_.push_back(at);
  elements_.emplace(std::pair{&node, std::move(key)}, result);
  return result;
}

Block Builder::reduce_body(LoopNest& nest, const Stage& stage, const std::vector<Scalar>& at) {
  const ExprNode& node = stage.expr.node();
  const Expr& body = node.args[0];
  std::vector<Scalar> inner = at;
  Scalar place = integer_scalar(0);
  std::vector<std::size_t> loops;
  for (std::size_t axis : node.axes) {
    if (body.dims()[axis] == Dim(1)) continue;
    const std::size_t id = nest.new_loop(concat("r", axis));
    loops.push_back(id);
    inner[axis] = loop_scalar(id);
    place = binary_scalar(BinaryOp::Multiply, DType::I64, place, nest.extent(body.dims()[axis]));
    place = binary_scalar(BinaryOp::Add, DType::I64, place, inner[axis]);
  }
  const bool keeps_place = is_arg(node.reduction);
  const std::size_t local = nest.new_local(body.dtype());
  Statement fold;
  fold.kind = Statement::Kind::Fold;
  fold.id = local;
  fold.reduction = node.reduction;
  fold.value = element(nest, body, inner);
  if (keeps_place) fold.place = place;
  Block block{std::move(fold)};
  std::size_t k = loops.size();
  for (std::size_t position = node.axes.size(); position-- > 0;) {
    const std::size_t axis = node.axes[position];
    if (body.dims()[axis] == Dim(1)) continue;
    block = {loop(loops[--k], body.dims()[axis], std::move(block))};
  }
  Statement start = define(local, identity_scalar(node.reduction, body.dtype()));
  start.reduction = node.reduction;
  block.insert(block.begin(), std::move(start));
  const Scalar result = keeps_place ? place_scalar(local) : local_scalar(local, node.dtype);
  block.push_back(store(stage, at, result, nest));
  return block;
}

Block Builder::scan_body(LoopNest& nest, const Stage& stage, const std::vector<Scalar>& at) {
  const ExprNode& node = stage.expr.node();
  const Expr& body = node.args[0];
  const std::size_t axis = node.axes[0], id = nest.new_loop(concat("s", axis));
  std::vector<Scalar> inner = at;
  inner[axis] = loop_scalar(id);
  if (node.is_reverse) {
    const Scalar last = binary_scalar(BinaryOp::Subtract, DType::I64, nest.extent(node.dims[axis]), integer_scalar(1));
    inner[axis] = binary_scalar(BinaryOp::Subtract, DType::I64, last, loop_scalar(id));
  }
  const std::size_t local = nest.new_local(node.dtype);
  Statement fold;
  fold.kind = Statement::Kind::Fold;
  fold.id = local;
  fold.reduction = node.reduction;
  fold.value = element(nest, body, inner);
  Statement written = store(stage, inner, local_scalar(local, node.dtype), nest);
  Block block;
  if (node.is_exclusive) block.push_back(written);
  block.push_back(std::move(fold));
  if (!node.is_exclusive) block.push_back(std::move(written));
  return {define(local, identity_scalar(node.reduction, node.dtype)), loop(id, node.dims[axis], std::move(block))};
}

Block Builder::scatter_body(LoopNest& nest, const Stage& stage) {
  const ExprNode& node = stage.expr.node();
  const Expr& updates = node.args[1];
  std::vector<Scalar> at;
  std::vector<std::pair<std::size_t, Dim>> loops;
  for (std::size_t axis = 0; axis < updates.rank(); ++axis) {
    if (updates.dims()[axis] == Dim(1)) {
      at.push_back(integer_scalar(0));
    } else {
      loops.emplace_back(nest.new_loop(concat("u", axis)), updates.dims()[axis]);
      at.push_back(loop_scalar(loops.back().first));
    }
  }
  Statement update;
  update.kind = Statement::Kind::Update;
  update.id = stage.buffer;
  update.view = stage.view;
  update.reduction = node.reduction;
  update.bounds = Bounds::Checked;
  update.value = element(nest, updates, at);
  for (std::size_t k = 2; k < node.args.size(); ++k) {
    const Expr& coordinate = node.args[k];
    update.indices.push_back(element(nest, coordinate, broadcast_position(nest, updates.dims(), coordinate.dims(), at)));
  }
  Block block{std::move(update)};
  for (std::size_t k = loops.size(); k-- > 0;) block = {loop(loops[k].first, loops[k].second, std::move(block))};
  return block;
}

// What stands inside the stage's outer loops.
Block Builder::stage_body(LoopNest& nest, const Stage& stage) {
  elements_.clear();
  current_ = static_cast<std::size_t>(&stage - stages_.data());
  const ExprNode& node = stage.expr.node();
  while (nest.loop_names.size() < node.dims.size()) nest.new_loop(concat("i", nest.loop_names.size()));
  std::vector<Scalar> at;
  for (std::size_t axis = 0; axis < node.dims.size(); ++axis) {
    at.push_back(node.dims[axis] == Dim(1) ? integer_scalar(0) : loop_scalar(axis));
  }
  const auto own = places_.find(&node);
  const bool is_this = own != places_.end() && own->second.buffer == stage.buffer;
  if (is_this && node.kind == ExprKind::Reduce) return reduce_body(nest, stage, at);
  if (is_this && node.kind == ExprKind::Scan) return scan_body(nest, stage, at);
  if (is_this && node.kind == ExprKind::Scatter) return scatter_body(nest, stage);
  return {store(stage, at, element(nest, stage.expr, at), nest)};
}

void Builder::build(const Group& group) {
  NestSequence::Part part;
  LoopNest& nest = part.nest;
  nest.name = concat(name_, sequence_.parts.empty() ? "" : concat("_", sequence_.parts.size()));
  std::size_t rank = 0;
  for (std::size_t k : group.stages) rank = std::max(rank, stages_[k].expr.rank());
  while (nest.loop_names.size() < rank) nest.new_loop(concat("i", nest.loop_names.size()));
  Block shared_body;
  for (std::size_t k : group.stages) {
    const Stage& stage = stages_[k];
    Block block = stage_body(nest, stage);
    for (std::size_t l = stage.loops.size(); l-- > group.shared;) {
      const std::size_t axis = stage.loops[l];
      block = {loop(axis, stage.expr.dims()[axis], std::move(block), true)};
    }
    for (Statement& statement : block) shared_body.push_back(std::move(statement));
  }
  const Stage& first = stages_[group.stages.front()];
  for (std::size_t l = group.shared; l-- > 0;) {
    shared_body = {loop(first.loops[l], first.expr.dims()[first.loops[l]], std::move(shared_body), true)};
  }
  nest.body = std::move(shared_body);

  // Buffers by their place in this nest; what only this nest sees shrinks to one iteration's part.
  std::set<std::size_t> inside, outside;
  for (const Group& other : groups_) {
    for (std::size_t k : other.stages) {
      std::set<std::size_t>& seen = &other == &group ? inside : outside;
      seen.insert(touched_[k].begin(), touched_[k].end());
    }
  }
  const std::vector<std::size_t> shared_axes(first.loops.begin(),
                                             first.loops.begin() + static_cast<std::ptrdiff_t>(group.shared));
  std::map<std::size_t, BufferUse> uses;
  for (std::size_t id : inside) {
    const Buffer& buffer = sequence_.buffers[id];
    const bool is_own = buffer.role == Role::Temporary && !outside.contains(id);
    Dims dims = buffer.dims;
    if (is_own) {
      for (std::size_t axis : shared_axes) dims[axis] = 1;
      if (product(dims) == Dim(1) && !is_updated(group, id)) {
        uses[id] = {nest.new_local(buffer.dtype), {}, true};
        continue;
      }
    } else {
      part.buffers.push_back(id);
    }
    // A temporary that an earlier nest made is only read here.
    const bool is_written = std::any_of(group.stages.begin(), group.stages.end(),
                                        [&](std::size_t k) { return stages_[k].buffer == id; });
    const Storage storage = is_own ? Storage::Scratch : is_written ? Storage::Result : Storage::Operand;
    const std::string_view letter = buffer.role == Role::Operand ? "x" : buffer.role == Role::Result ? "y" : "m";
    uses[id] = {nest.buffers.size(), is_own ? shared_axes : std::vector<std::size_t>(), false};
    nest.buffers.push_back(
        {concat(letter, buffer.role == Role::Temporary ? id : buffer.index), buffer.dtype, std::move(dims), storage});
  }
  renumber_buffers(nest, uses);
  list_extents(nest);
  sequence_.parts.push_back(std::move(part));
}

}  // namespace

bool is_compilable(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::F32:
    case DType::F16:
    case DType::BF16:
    case DType::I64:
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U64:
    case DType::U32:
    case DType::U16:
    case DType::U8:
    case DType::Bool: return true;
    default: return false;
  }
}

NestSequence build_nests(const std::string& name, const std::vector<Expr>& results) {
  return Builder(name, results).run();
}

}  // namespace tenon::codegen
