#include "codegen/cuda/attention_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "nests/affine.h"

#include <algorithm>

namespace tenon::codegen::cuda {
namespace {

std::int64_t padded(std::int64_t size) { return (size + 15) / 16 * 16; }

// Two stages of keys and values fit the static shared memory limit. With more keys per tile the
// register demand would limit occupancy to one block.
std::int64_t key_count(const AttentionTile& tile) {
  const std::int64_t widest = std::max(tile.head_size, tile.value_size);
  return widest <= 128 ? 32 : 16;
}
// With small heads the queries fit in shared memory too, and registers suffice for six blocks per
// SM.
bool is_small(const AttentionTile& tile) { return tile.head_size <= 64 && tile.value_size <= 64; }

std::int64_t shared_elements(const AttentionTile& tile) {
  constexpr std::int64_t kApart = 8;  // padding against bank conflicts
  const std::int64_t size = padded(tile.head_size) + kApart,
                     values = padded(tile.value_size) + kApart;
  return 2 * key_count(tile) * (size + values) + (is_small(tile) ? kAttentionRows * size : 0);
}

void name_query(const AttentionTile& tile, const char* name, ValueWriter& values) {
  if (tile.queries != nullptr) values.name_loop(tile.queries->id, name);
}

// Writes the score of one product, the local `product`, as an expression.
std::string score_of(const AttentionTile& tile, std::size_t product, ValueWriter& values) {
  nests::ScalarRewriter rewriting([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load && node.id == tile.score_buffer)
      return local_scalar(product, DType::F32);
    // A product takes one instruction, a quotient ten.
    const bool is_quotient =
        node.kind == ScalarKind::Binary && node.binary == BinaryOp::Divide && is_float(node.dtype);
    if (const auto by = is_quotient ? literal_value(node.args[1]) : std::nullopt; by && *by != 0)
      return binary_scalar(BinaryOp::Multiply, node.dtype, node.args[0],
                           literal_scalar(node.dtype, 1 / *by, 0));
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  Block holder{nests::define_statement(product, tile.score)};
  rewriting.apply(holder);
  return values.value(holder.front().value);
}

std::string offset_of(const Scalar& load, ValueWriter& values) {
  const std::vector<Scalar> at(load->args.begin(),
                               load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
  return values.place(at, load->view, false).offset;
}

}  // namespace

unsigned min_blocks_per_multiprocessor(const AttentionTile& tile) { return is_small(tile) ? 6 : 1; }

void write_attention(const LoopNest& nest, const AttentionTile& tile, Lines& lines,
                     ValueWriter& values) {
  lines.add(concat("__shared__ __align__(16) u16 tiles[", shared_elements(tile), "];"));
  const std::string queries = values.extent(query_count(tile));
  lines.add(concat("const i64 blocks = (", queries, " + ", kAttentionRows - 1, ") / ",
                   kAttentionRows, ";"));
  lines.add(concat("const i32 first = (i32)((i64)blockIdx.x % blocks) * ", kAttentionRows, ";"));
  lines.add("i64 rest = (i64)blockIdx.x / blocks;");
  for (std::size_t k = tile.outer.size(); k-- > 0;) {
    const Statement& loop = *tile.outer[k];
    const std::string name = loop_name(loop.id), count = values.extent(loop.extent);
    values.name_loop(loop.id, name);
    lines.add(concat("const i64 ", name, " = rest % ", count, "; rest /= ", count, ";"));
  }
  // Offset of the first row.
  name_query(tile, "0", values);
  for (const std::size_t loop : tile.inner_loops) values.name_loop(loop, "0");
  values.begin_statement();
  const auto start = [&](const Scalar& load) {
    return concat(nest.buffers[load->id].name, " + ", offset_of(load, values));
  };
  const std::string q = start(tile.q), k = start(tile.k), v = start(tile.v);
  const std::string y = concat(nest.buffers[tile.store->id].name, " + ",
                               values.place(tile.store->indices, tile.store->view, false).offset);
  const std::size_t product = nest.locals.size();  // an id after the nest's own locals
  std::string keys = values.extent(tile.keys);
  if (const std::optional<Scalar> last = last_visible_key(tile)) {
    // Skips key tiles that the mask hides from every query of the block.
    values.begin_statement();
    name_query(tile, "last_query", values);
    lines.add(concat("const i64 end_query = first + ", kAttentionRows, " < ", queries,
                     " ? first + ", kAttentionRows, " : ", queries, ";"));
    lines.add("const i64 last_query = end_query - 1;");
    lines.add(concat("i64 seen = (i64)", values.value(*last), " + 1;"));
    lines.add(concat("seen = seen < 0 ? 0 : seen < ", keys, " ? seen : ", keys, ";"));
    keys = "seen";
  }
  values.begin_statement();
  name_query(tile, "query", values);
  values.name_loop(tile.key_loop, "key");
  lines.open(concat("const auto score = [&](float ", values.local(product),
                    ", i32 query, i32 key) -> float"));
  lines.add(concat("return (float)(", score_of(tile, product, values), ");"));
  lines.close();
  lines.add(";");
  lines.add(concat("attention_rows<", tile.dtype == DType::F16 ? "FormatF16" : "FormatBf16", ", ",
                   tile.head_size, ", ", tile.value_size, ", ", key_count(tile), ", ",
                   tile.is_zero_if_masked ? "true" : "false", ">(", q, ", ",
                   values.extent(tile.q_row), ", ", k, ", ", values.extent(tile.k_row), ", ", v,
                   ", ", values.extent(tile.v_row), ", ", y, ", ", values.extent(tile.y_row), ", ",
                   queries, ", ", keys, ", first, tiles, score);"));
}

namespace {

// Writes the head of a lambda over a tile, whose positions in the outer loops its body may name.
void open_for_tile(const AttentionTile& tile, const std::string& head, Lines& lines,
                   ValueWriter& values) {
  lines.open(head);
  for (const Statement* loop : tile.outer) {
    const std::string name = loop_name(loop->id);
    values.name_loop(loop->id, name);
    lines.add(concat("const i64 ", name, " = at.", name, ";"));
  }
  values.begin_statement();
}
void close_lambda(Lines& lines) {
  lines.close();
  lines.add(";");
}

// Writes `locate`: the position of a tile, the addresses of its first rows, and its visible keys.
void write_locate(const LoopNest& nest, const AttentionTile& tile,
                  const std::optional<Scalar>& last_key, std::int64_t tile_queries, Lines& lines,
                  ValueWriter& values) {
  const std::string queries = values.extent(query_count(tile)), keys = values.extent(tile.keys);
  lines.open("const auto locate = [&](i32 head, i32 span) -> Tile");
  lines.add("Tile at;");
  lines.add("i64 rest = head;");
  for (std::size_t k = tile.outer.size(); k-- > 0;) {
    const Statement& loop = *tile.outer[k];
    const std::string name = loop_name(loop.id), count = values.extent(loop.extent);
    values.name_loop(loop.id, name);
    lines.add(
        concat("const i64 ", name, " = at.", name, " = rest % ", count, "; rest /= ", count, ";"));
  }
  name_query(tile, "0", values);
  for (const std::size_t loop : tile.inner_loops) values.name_loop(loop, "0");
  values.begin_statement();
  lines.add(
      concat("at.q = ", nest.buffers[tile.q->id].name, " + ", offset_of(tile.q, values), ";"));
  lines.add(concat("at.keys_at = ", offset_of(tile.k, values), ";"));
  lines.add(concat("at.values_at = ", offset_of(tile.v, values), ";"));
  lines.add(concat("at.y = ", nest.buffers[tile.store->id].name, " + ",
                   values.place(tile.store->indices, tile.store->view, false).offset, ";"));
  lines.add(concat("at.first = span * ", tile_queries, ";"));
  lines.add(concat("at.seen = (i32)", keys, ";"));
  if (last_key) {
    lines.add(concat("const i32 end = min(at.first + ", tile_queries, ", (i32)", queries, ");"));
    lines.add("const i32 seen = min(last(at, end - 1) + 1, at.seen);");
    lines.add("at.seen = seen < 0 ? 0 : seen;");
  }
  lines.add("return at;");
  close_lambda(lines);
}

// Writes the functions of a tile that both templates call: `last`, `locate`, `score`, `query`,
// `result`. The template multiplies scores by `scale` if there is one.
template <class Attention>
void write_tile_functions(const LoopNest& nest, const AttentionTile& tile,
                          const Attention& attention, std::int64_t tile_queries, Lines& lines,
                          ValueWriter& values) {
  const std::size_t product = nest.locals.size();  // an id after the nest's own locals
  std::string positions;
  for (const Statement* loop : tile.outer) positions += concat("i64 ", loop_name(loop->id), "; ");
  lines.add(concat("struct Tile : AttentionSpan { ", positions, "const u16* q; u16* y; };"));
  open_for_tile(tile, "const auto last = [&](const Tile& at, i32 query) -> i32", lines, values);
  name_query(tile, "query", values);
  lines.add(concat(
      "return ",
      attention.last_key ? concat("(i32)(", values.value(*attention.last_key), ")") : "query",
      ";"));
  close_lambda(lines);
  write_locate(nest, tile, attention.last_key, tile_queries, lines, values);
  open_for_tile(tile,
                concat("const auto score = [&](const Tile& at, float ", values.local(product),
                       ", i32 query, i32 key) -> float"),
                lines, values);
  name_query(tile, "query", values);
  values.name_loop(tile.key_loop, "key");
  lines.add(concat("return (float)(",
                   attention.scale ? values.local(product) : score_of(tile, product, values),
                   ");"));
  close_lambda(lines);
  const auto write_row = [&](const char* name, const char* type, const char* start,
                             const Dim& row) {
    lines.add(concat("const auto ", name, " = [&](const Tile& at, i32 row) -> ", type,
                     " { return at.", start, " + (i64)row * ", values.extent(row), "; };"));
  };
  write_row("query", "const u16*", "q", tile.q_row);
  write_row("result", "u16*", "y", tile.y_row);
}

constexpr double kScoreLog2e = 1.4426950408889634;

std::string scale_text(const std::optional<double>& scale) {
  return literal_text(DType::F32, scale.value_or(1) * kScoreLog2e, 0);
}
const char* format_of(const AttentionTile& tile) {
  return tile.dtype == DType::F16 ? "FormatF16" : "FormatBf16";
}
const char* flag(bool value) { return value ? ", true" : ", false"; }

}  // namespace

void write_wgmma_attention(const LoopNest& nest, const AttentionTile& tile,
                           const WgmmaAttention& attention, Lines& lines, ValueWriter& values) {
  write_tile_functions(nest, tile, attention, attention.queries_per_tile(), lines, values);
  std::string heads = "(i64)1";
  for (const Statement* loop : tile.outer) heads += concat(" * ", values.extent(loop->extent));
  lines.add(concat("attention_tiles<", format_of(tile), ", ", tile.head_size, ", ",
                   attention.consumer_groups, ", ", attention.keys_per_block,
                   flag(attention.scale.has_value()), flag(attention.last_key.has_value()),
                   flag(tile.is_zero_if_masked), ">(&map_a, &map_b, ", values.extent(tile.k_row),
                   ", ", values.extent(tile.v_row), ", (i32)(", heads, "), (i32)",
                   values.extent(query_count(tile)), ", (i32)", values.extent(tile.keys), ", ",
                   scale_text(attention.scale), ", locate, query, result, score, last);"));
}

void write_split_attention(const LoopNest& nest, const AttentionTile& tile,
                           const SplitAttention& attention, Lines& lines, ValueWriter& values) {
  write_tile_functions(nest, tile, attention, attention.rows, lines, values);
  lines.add(concat("attention_split<", format_of(tile), ", ", tile.head_size, ", ", attention.rows,
                   ", ", attention.parts, ", ", attention.stages, flag(tile.is_zero_if_masked),
                   ">(&map_a, &map_b, ", values.extent(tile.k_row), ", ", values.extent(tile.v_row),
                   ", (i32)", values.extent(tile.keys), ", ", scale_text(attention.scale),
                   ", locate, query, result, score);"));
}

}  // namespace tenon::codegen::cuda
