#include "nests/stage_writer.h"

#include "base/error.h"
#include "expr/names.h"
#include "ir/dim_broadcast.h"
#include "nests/index_map.h"

#include <optional>
#include <set>

namespace tenon::nests {
namespace {

Statement store(const NestStage& stage, std::vector<Scalar> at, Scalar value, LoopNest& nest) {
  if (stage.offset != Dim(0)) {
    at[stage.axis] =
        binary_scalar(BinaryOp::Add, DType::I64, at[stage.axis], nest.extent(stage.offset));
  }
  Statement statement;
  statement.kind = Statement::Kind::Store;
  statement.id = stage.buffer;
  statement.indices = std::move(at);
  statement.view = stage.view;
  statement.value = std::move(value);
  return statement;
}

// Products accumulate in f64, as in the reference: partial products overflow sooner than the
// result.
DType folded_in(Reduction reduction, DType dtype) {
  return reduction == Reduction::Product && is_float(dtype) ? DType::F64 : dtype;
}
Scalar widened(Scalar x, DType from, DType to) {
  return from == to ? x : cast_scalar(std::move(x), to);
}
// Converts back; narrow floats are rounded when they are stored.
Scalar folded(std::size_t local, DType from, DType to) {
  const Scalar total = local_scalar(local, from);
  if (from == to) return total;
  return cast_scalar(total, info(to).arithmetic == Arithmetic::F32 ? DType::F32 : to);
}

}  // namespace

bool is_stage(ExprKind kind) {
  return kind == ExprKind::Reduce || kind == ExprKind::Scan || kind == ExprKind::Scatter ||
         kind == ExprKind::Concat;
}

namespace {

// Evaluates an integer expression that is constant at every position; no value otherwise.
std::optional<std::int64_t> number_of(const Expr& expr) {
  const ExprNode& node = expr.node();
  switch (node.kind) {
    case ExprKind::Literal:
      return node.integer;
    case ExprKind::Read:
      return node.has_fill ? std::nullopt : number_of(node.args[0]);
    case ExprKind::Reshape:
      return number_of(node.args[0]);
    case ExprKind::Select: {
      const auto condition = number_of(node.args[0]);
      return condition ? number_of(node.args[*condition != 0 ? 1 : 2]) : std::nullopt;
    }
    case ExprKind::Binary:
      break;
    default:
      return std::nullopt;
  }
  if (!is_integer(node.args[0].dtype())) return std::nullopt;
  const auto a = number_of(node.args[0]), b = number_of(node.args[1]);
  std::int64_t sum = 0;
  if (!a || !b) return std::nullopt;
  if (node.binary == BinaryOp::Less) return *a < *b;
  if (node.binary == BinaryOp::Add && !__builtin_add_overflow(*a, *b, &sum)) return sum;
  return std::nullopt;
}

// Detects constant out-of-bounds indices, as after constant propagation into an operand.
bool reads_outside(const ExprNode& read) {
  const Expr& source = read.args[0];
  for (std::size_t axis = 0; axis < source.rank(); ++axis) {
    const Dim& extent = source.dims()[axis];
    const auto at = number_of(read.args[axis + 1]);
    if (at && (*at < 0 || (extent.is_constant() && *at >= extent.constant()))) return true;
  }
  return false;
}

}  // namespace

bool needs_check(const ExprNode& read) {
  if (reads_outside(read)) return true;
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

Statement loop_statement(std::size_t id, const Dim& extent, Block body, bool is_independent) {
  Statement statement;
  statement.is_independent = is_independent;
  statement.id = id;
  statement.extent = extent;
  statement.body = std::move(body);
  return statement;
}

std::vector<Scalar> StageWriter::repeated_position(LoopNest& nest, const Dims& from, const Dims& to,
                                                   const std::vector<Scalar>& at) {
  std::vector<Scalar> inner;
  const std::size_t skipped = from.size() - to.size();
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    const Dim& extent = to[axis];
    if (extent == Dim(1)) {
      inner.push_back(positions_(integer_scalar(0)));
    } else if (!may_repeat(extent, from[skipped + axis])) {
      inner.push_back(at[skipped + axis]);
    } else {  // May be 1 at run time.
      const Scalar is_one =
          binary_scalar(BinaryOp::Equal, DType::Bool, nest.extent(extent), integer_scalar(1));
      inner.push_back(positions_(select_scalar(is_one, integer_scalar(0), at[skipped + axis])));
    }
  }
  return inner;
}

Scalar StageWriter::load(const StageResult& place, const Dims& dims,
                         const std::vector<Scalar>& at) const {
  ScalarNode node;
  node.kind = ScalarKind::Load;
  node.dtype = buffers_[place.buffer].dtype;
  node.id = place.buffer;
  node.view = dims;
  node.args = at;
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

Scalar StageWriter::read(LoopNest& nest, const ExprNode& node, const std::vector<Scalar>& at) {
  const Expr& source = node.args[0];
  std::vector<Scalar> coordinates;
  for (std::size_t k = 0; k < source.rank(); ++k) {
    const Expr& coordinate = node.args[k + 1];
    const std::vector<Scalar> inner = repeated_position(nest, node.dims, coordinate.dims(), at);
    coordinates.push_back(positions_(element(nest, coordinate, inner)));
  }
  const bool is_checked = !node.has_fill && needs_check(node);
  if (!node.has_fill && !is_checked) return element(nest, source, coordinates);
  const Expr* whole = &source;
  while (!places_.contains(&whole->node())) whole = &whole->node().args[0];  // Under reshapes.
  ScalarNode load_node;
  load_node.kind = ScalarKind::Load;
  load_node.dtype = source.dtype();
  load_node.id = places_.at(&whole->node()).buffer;
  load_node.view = source.dims();
  load_node.bounds = is_checked ? Bounds::Checked : Bounds::Fill;
  load_node.args = std::move(coordinates);
  if (node.has_fill) {
    const Expr& fill = node.args.back();
    load_node.args.push_back(
        element(nest, fill, repeated_position(nest, node.dims, fill.dims(), at)));
  }
  return Scalar(std::make_shared<const ScalarNode>(std::move(load_node)));
}

Scalar StageWriter::element(LoopNest& nest, const Expr& expr, const std::vector<Scalar>& at) {
  const ExprNode& node = expr.node();
  std::vector<const ScalarNode*> key;
  for (const Scalar& index : at) key.push_back(&index.node());
  const auto found = elements_.find({&node, key});
  if (found != elements_.end()) return found->second;

  const auto arg = [&](std::size_t k) {
    const Expr& inner = node.args[k];
    return element(nest, inner, repeated_position(nest, node.dims, inner.dims(), at));
  };
  Scalar result;
  if (const auto place = places_.find(&node);
      place != places_.end() && place->second.ready <= current_) {
    result = load(place->second, node.dims, at);
  } else {
    switch (node.kind) {
      case ExprKind::Literal:
        result = literal_scalar(node.dtype, node.real, node.integer);
        break;
      case ExprKind::Extent:
        result = nest.extent(node.extent);
        break;
      case ExprKind::Index:
        result = at[node.axes[0]];
        break;
      case ExprKind::Unary:
        result = unary_scalar(node.unary, node.dtype, arg(0));
        break;
      case ExprKind::Binary:
        result = binary_scalar(node.binary, node.dtype, arg(0), arg(1));
        break;
      case ExprKind::Select:
        result = select_scalar(arg(0), arg(1), arg(2));
        break;
      case ExprKind::Cast:
        result = cast_scalar(arg(0), node.dtype);
        break;
      case ExprKind::Read:
        result = read(nest, node, at);
        break;
      case ExprKind::Reshape: {
        std::vector<Scalar> inner = reshaped_position(nest, node.dims, node.args[0].dims(), at);
        for (Scalar& index : inner) index = positions_(index);
        result = element(nest, node.args[0], inner);
        break;
      }
      default:
        TENON_ASSERT(false, "stages have buffers before they are read");
    }
  }
  if (!is_compilable(node.dtype)) {
    throw Error("kernels do not compute with this element type", ErrorKind::Unsupported)
        .got(node.dtype);
  }
  elements_.emplace(std::pair{&node, std::move(key)}, result);
  return result;
}

Block StageWriter::reduce_body(LoopNest& nest, const NestStage& stage,
                               const std::vector<Scalar>& at) {
  const ExprNode& node = stage.expr.node();
  const Expr& body = node.args[0];
  std::vector<Scalar> inner = at;
  Scalar place = integer_scalar(0);
  std::vector<std::size_t> loops;
  for (std::size_t axis : node.axes) {
    if (body.dims()[axis] == Dim(1)) continue;
    const std::size_t id = nest.new_loop(concat("r", axis));
    loops.push_back(id);
    inner[axis] = positions_(loop_scalar(id));
    place = binary_scalar(BinaryOp::Multiply, DType::I64, place, nest.extent(body.dims()[axis]));
    place = binary_scalar(BinaryOp::Add, DType::I64, place, inner[axis]);
  }
  const bool keeps_place = is_arg(node.reduction);
  const DType within = folded_in(node.reduction, body.dtype());
  const std::size_t local = nest.new_local(within);
  Statement fold;
  fold.kind = Statement::Kind::Fold;
  fold.id = local;
  fold.reduction = node.reduction;
  fold.value = widened(element(nest, body, inner), body.dtype(), within);
  if (keeps_place) fold.place = place;
  Block block{std::move(fold)};
  std::size_t k = loops.size();
  for (std::size_t position = node.axes.size(); position-- > 0;) {
    const std::size_t axis = node.axes[position];
    if (body.dims()[axis] == Dim(1)) continue;
    block = {loop_statement(loops[--k], body.dims()[axis], std::move(block))};
  }
  Statement start = define_statement(local, identity_scalar(node.reduction, within));
  start.reduction = node.reduction;
  block.insert(block.begin(), std::move(start));
  const Scalar result = keeps_place ? position_scalar(local) : folded(local, within, node.dtype);
  block.push_back(store(stage, at, result, nest));
  return block;
}

Block StageWriter::scan_body(LoopNest& nest, const NestStage& stage,
                             const std::vector<Scalar>& at) {
  const ExprNode& node = stage.expr.node();
  const Expr& body = node.args[0];
  const std::size_t axis = node.axes[0], id = nest.new_loop(concat("s", axis));
  std::vector<Scalar> inner = at;
  inner[axis] = positions_(loop_scalar(id));
  if (node.is_reverse) {
    const Scalar last = binary_scalar(BinaryOp::Subtract, DType::I64, nest.extent(node.dims[axis]),
                                      integer_scalar(1));
    inner[axis] = positions_(binary_scalar(BinaryOp::Subtract, DType::I64, last, loop_scalar(id)));
  }
  const DType within = folded_in(node.reduction, node.dtype);
  const std::size_t local = nest.new_local(within);
  Statement fold;
  fold.kind = Statement::Kind::Fold;
  fold.id = local;
  fold.reduction = node.reduction;
  fold.value = widened(element(nest, body, inner), body.dtype(), within);
  Statement written = store(stage, inner, folded(local, within, node.dtype), nest);
  Block block;
  if (node.is_exclusive) block.push_back(written);
  block.push_back(std::move(fold));
  if (!node.is_exclusive) block.push_back(std::move(written));
  return {define_statement(local, identity_scalar(node.reduction, within)),
          loop_statement(id, node.dims[axis], std::move(block))};
}

Block StageWriter::scatter_body(LoopNest& nest, const NestStage& stage) {
  const ExprNode& node = stage.expr.node();
  const Expr& updates = node.args[1];
  std::vector<Scalar> at;
  std::vector<std::pair<std::size_t, Dim>> loops;
  for (std::size_t axis = 0; axis < updates.rank(); ++axis) {
    if (updates.dims()[axis] == Dim(1)) {
      at.push_back(positions_(integer_scalar(0)));
    } else {
      loops.emplace_back(nest.new_loop(concat("u", axis)), updates.dims()[axis]);
      at.push_back(positions_(loop_scalar(loops.back().first)));
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
    update.indices.push_back(
        element(nest, coordinate, repeated_position(nest, updates.dims(), coordinate.dims(), at)));
  }
  Block block{std::move(update)};
  for (std::size_t k = loops.size(); k-- > 0;)
    block = {loop_statement(loops[k].first, loops[k].second, std::move(block))};
  return block;
}

Block StageWriter::body(LoopNest& nest, std::size_t index) {
  elements_.clear();
  positions_.clear();
  current_ = index;
  const NestStage& stage = stages_[index];
  const ExprNode& node = stage.expr.node();
  while (nest.loop_names.size() < node.dims.size())
    nest.new_loop(concat("i", nest.loop_names.size()));
  std::vector<Scalar> at;
  for (std::size_t axis = 0; axis < node.dims.size(); ++axis) {
    at.push_back(positions_(node.dims[axis] == Dim(1) ? integer_scalar(0) : loop_scalar(axis)));
  }
  const auto own = places_.find(&node);
  const bool is_this = own != places_.end() && own->second.buffer == stage.buffer;
  if (is_this && node.kind == ExprKind::Reduce) return reduce_body(nest, stage, at);
  if (is_this && node.kind == ExprKind::Scan) return scan_body(nest, stage, at);
  if (is_this && node.kind == ExprKind::Scatter) return scatter_body(nest, stage);
  return {store(stage, at, element(nest, stage.expr, at), nest)};
}

}  // namespace tenon::nests
