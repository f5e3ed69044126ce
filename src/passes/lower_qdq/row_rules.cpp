#include "passes/lower_qdq/nibble_rows.h"
#include "passes/lower_qdq/rules.h"

#include <algorithm>
#include <cstring>

namespace tenon::passes::qdq {
namespace {

using rewrite::Match;
using rewrite::Rule;

// Constant folding turns smaller weights into floats, for which register tiles are faster.
constexpr std::int64_t kLeastElements = std::int64_t{1} << 18;

// Widens elements to one byte each, so that kernels need not unpack 4-bit elements.
std::optional<Tensor> in_bytes(const Constant& constant) {
  switch (constant.dtype()) {
    case DType::I8:
    case DType::U8:
      return constant.materialise();
    case DType::I4:
      return constant.materialise().converted(DType::I8);
    case DType::U4:
      return constant.materialise().converted(DType::U8);
    default:
      return std::nullopt;
  }
}

// Reorders a matrix into blocks of columns, [blocks, rows, 32], zero-padding the last block.
Tensor in_blocks(const Tensor& matrix, std::int64_t rows, std::int64_t columns) {
  const std::int64_t blocks = (columns + kColumns - 1) / kColumns;
  Tensor made(matrix.dtype(), {blocks, rows, kColumns});
  const std::size_t element = info(matrix.dtype()).storage_bytes;
  const std::byte* from = matrix.bytes().data();
  std::byte* to = made.mutable_bytes().data();
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block * kColumns, count = std::min(kColumns, columns - first);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(to + static_cast<std::size_t>((block * rows + row) * kColumns) * element,
                  from + static_cast<std::size_t>(row * columns + first) * element,
                  static_cast<std::size_t>(count) * element);
    }
  }
  return made;
}

// Returns the granularity of the scales; nullopt if it is not supported.
std::optional<Runs> runs_of(const Node& dequantize, const Constant& scale, std::int64_t terms,
                            std::int64_t columns) {
  const AttrValue *axis = dequantize.attrs.find("axis"),
                  *block = dequantize.attrs.find("block_size");
  const std::int64_t along = axis ? std::get<Dim>(*axis).constant() : 1;
  const std::int64_t length = block ? std::get<Dim>(*block).constant() : 0;
  const Shape& shape = scale.shape();
  if (scale.size() == 1 && length == 0) return Runs{};
  if (shape == Shape{columns} && (along == 1 || along == -1) && length == 0) return Runs{1, terms};
  const bool is_grouped = length > 0 && (along == 0 || along == -2);
  const Shape of_groups{is_grouped ? (terms + length - 1) / length : 0, columns};
  if (is_grouped && shape == of_groups) return Runs{of_groups[0], length};
  return std::nullopt;
}

// Returns [columns, rounded up to whole blocks].
ValueId row_times_bytes(const Match& match, const Constant& weights, const Constant& scale,
                        const Constant* zero, const Runs& runs) {
  const std::int64_t terms = weights.shape()[0], columns = weights.shape()[1];
  const std::optional<Tensor> bytes = in_bytes(weights);
  if (!bytes) return {};
  const auto laid_out = [&](const Tensor& numbers) {
    return runs.rows == 0 ? numbers.reshaped({}) : in_blocks(numbers, runs.rows, columns);
  };
  std::vector<ValueId> operands = {match.make_constant(Constant(in_blocks(*bytes, terms, columns))),
                                   match.make_constant(Constant(laid_out(scale.materialise())))};
  match.succeed(match.value("w"), operands[0]);
  match.succeed(match.value("t"), operands[1]);
  if (zero) operands.push_back(match.make_constant(Constant(laid_out(*in_bytes(*zero)))));
  Attributes attrs;
  if (runs.rows > 0) attrs = {{"axis", Dim(1)}, {"block_size", Dim(runs.length)}};
  const ValueId real = match.make("dequantize_linear", operands, std::move(attrs));
  // Keeps the computation of the row from being repeated for every block of columns.
  const ValueId row = match.make("stop_fusion", {match.value("x")});
  const ValueId column = match.make_reshape(row, {Dim(terms), Dim(1)});
  const ValueId sums = match.make("reduce_sum", {match.make("mul", {column, real})},
                                  {{"axes", Dims{Dim(1)}}, {"keep_axes", false}});
  return match.make_reshape(sums, {Dim((columns + kColumns - 1) / kColumns * kColumns)});
}

// Matrix-vector product with narrow weights (weight-only quantization): every weight is read once,
// so it is widened at the multiplication and only narrow elements are read from memory. With more
// rows it pays to widen the weights once.
ValueId row_times_narrow_weights(const Match& match) {
  const Graph& graph = match.graph();
  const TensorType *x = match.type("x"), *w = match.type("w");
  const Type& result = match.root_type();
  if (!x || !w || w->rank() != 2 || x->rank() == 0 || x->dtype != DType::F32 ||
      !result.is_tensor() || result.tensor().dtype != DType::F32 || !x->layout.is_empty() ||
      !w->layout.is_empty())
    return {};
  const NodeId maker = graph.value(match.value("x")).producer;
  if (maker && graph.op_name(maker) == "dequantize_linear") return {};
  const Constant *weights = graph.constant_of(match.value("w")),
                 *scale = graph.constant_of(match.value("t"));
  if (!weights || !scale || weights->size() < kLeastElements || scale->dtype() != DType::F32)
    return {};
  const std::int64_t terms = weights->shape()[0], columns = weights->shape()[1];
  if (!(product(x->dims) == Dim(terms)) || !all_constant(result.tensor().dims)) {
    match.refuse("M is larger than one: weights are dequantized once for all rows");
    return {};
  }
  const Constant* zero = match.has("y") ? graph.constant_of(match.value("y")) : nullptr;
  if (match.has("y") && (!zero || zero->shape() != scale->shape())) return {};
  const std::optional<Runs> runs = runs_of(match.node("q"), *scale, terms, columns);
  if (!runs || columns < kColumns) return {};
  const Dims shape = result.tensor().dims;
  ValueId sums = row_times_nibbles(match, *weights, *scale, zero, *runs);
  if (!sums) sums = row_times_bytes(match, *weights, *scale, zero, *runs);
  if (!sums) return {};
  const std::int64_t filled = (columns + kColumns - 1) / kColumns * kColumns;
  if (filled != columns) {
    sums = match.make(
        "slice", {sums},
        {{"starts", Dims{Dim(0)}}, {"ends", Dims{Dim(columns)}}, {"axes", Dims{Dim(0)}}});
  }
  return match.make_reshape(sums, shape);
}

}  // namespace

std::vector<Rule> row_rules() {
  return {{"matmul(x, q: dequantize_linear(w, t, y?) {..})", row_times_narrow_weights}};
}

}  // namespace tenon::passes::qdq
