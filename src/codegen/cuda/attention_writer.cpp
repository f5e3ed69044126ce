#include "codegen/cuda/attention_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "nests/affine.h"

#include <algorithm>
#include <limits>

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

bool is_masked(const Scalar& scalar) {
  if (scalar->kind == ScalarKind::Cast) return is_masked(scalar->args[0]);
  return scalar->kind == ScalarKind::Real &&
         scalar->real == -std::numeric_limits<double>::infinity();
}

// Returns the last key that a query sees under a causal mask: the score masks all later keys, and
// this key does not decrease from query to query.
std::optional<Scalar> last_key(const AttentionTile& tile) {
  const nests::Affine key{{{tile.key_loop, 1}}, 0};
  for (const Scalar* at = &tile.score;;) {
    if ((*at)->kind == ScalarKind::Cast) {
      at = &(*at)->args[0];
      continue;
    }
    if ((*at)->kind != ScalarKind::Select || !is_masked((*at)->args[2])) return std::nullopt;
    const Scalar& condition = (*at)->args[0];
    const bool is_bound =
        condition->kind == ScalarKind::Binary && condition->binary == BinaryOp::LessEqual;
    const auto left = is_bound ? nests::affine_of(condition->args[0]) : std::nullopt;
    const auto right = is_bound ? nests::affine_of(condition->args[1]) : std::nullopt;
    if (left && *left == key && right) {
      const auto moves = right->steps.find(tile.queries->id);
      if ((moves == right->steps.end() || moves->second >= 0) &&
          !right->steps.contains(tile.key_loop))
        return condition->args[1];
    }
    at = &(*at)->args[1];
  }
}

}  // namespace

unsigned min_blocks_per_multiprocessor(const AttentionTile& tile) { return is_small(tile) ? 6 : 1; }

void write_attention(const LoopNest& nest, const AttentionTile& tile, Lines& lines,
                     ValueWriter& values) {
  lines.add(concat("__shared__ __align__(16) u16 tiles[", shared_elements(tile), "];"));
  const std::string queries = values.extent(tile.queries->extent);
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
  values.name_loop(tile.queries->id, "0");
  for (const std::size_t loop : tile.inner_loops) values.name_loop(loop, "0");
  values.begin_statement();
  const auto start = [&](const Scalar& load) {
    const std::vector<Scalar> at(
        load->args.begin(), load->args.begin() + static_cast<std::ptrdiff_t>(load->view.size()));
    return concat(nest.buffers[load->id].name, " + ", values.place(at, load->view, false).offset);
  };
  const std::string q = start(tile.q), k = start(tile.k), v = start(tile.v);
  const std::string y = concat(nest.buffers[tile.store->id].name, " + ",
                               values.place(tile.store->indices, tile.store->view, false).offset);
  const std::size_t product = nest.locals.size();  // an id after the nest's own locals
  nests::ScalarRewriter rewriting([&](ScalarNode node) {
    if (node.kind == ScalarKind::Load && node.id == tile.score_buffer)
      return local_scalar(product, DType::F32);
    return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
  });
  Block holder{nests::define_statement(product, tile.score)};
  rewriting.apply(holder);
  const Scalar& score = holder.front().value;
  std::string keys = values.extent(tile.keys);
  if (const std::optional<Scalar> last = last_key(tile)) {
    // Skips key tiles that the mask hides from every query of the block.
    values.begin_statement();
    values.name_loop(tile.queries->id, "last_query");
    lines.add(concat("const i64 end_query = first + ", kAttentionRows, " < ", queries,
                     " ? first + ", kAttentionRows, " : ", queries, ";"));
    lines.add("const i64 last_query = end_query - 1;");
    lines.add(concat("i64 seen = (i64)", values.value(*last), " + 1;"));
    lines.add(concat("seen = seen < 0 ? 0 : seen < ", keys, " ? seen : ", keys, ";"));
    keys = "seen";
  }
  values.begin_statement();
  values.name_loop(tile.queries->id, "query");
  values.name_loop(tile.key_loop, "key");
  lines.open(concat("const auto score = [&](float ", values.local(product),
                    ", i32 query, i32 key) -> float"));
  lines.add(concat("return (float)(", values.value(score), ");"));
  lines.close();
  lines.add(";");
  lines.add(concat("attention_rows<", tile.dtype == DType::F16 ? "FormatF16" : "FormatBf16", ", ",
                   tile.head_size, ", ", tile.value_size, ", ", key_count(tile), ", ",
                   tile.is_zero_if_masked ? "true" : "false", ">(", q, ", ",
                   values.extent(tile.q_row), ", ", k, ", ", values.extent(tile.k_row), ", ", v,
                   ", ", values.extent(tile.v_row), ", ", y, ", ", values.extent(tile.y_row), ", ",
                   queries, ", ", keys, ", first, tiles, score);"));
}

}  // namespace tenon::codegen::cuda
