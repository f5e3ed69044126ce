#include "codegen/cuda/product_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "nests/index_map.h"
#include "nests/stride.h"

namespace tenon::codegen::cuda {

namespace {

// What is computed of a sum, before it is rounded to be stored.
std::string value_type(const ProductTile& tile) {
  return tile.has_bytes() ? stored_type(tile.result_dtype) : "float";
}

// A nest lists the extents of its loops, not what they make together.
std::string row_count(const ProductTile& tile, ValueWriter& values) {
  std::string count = "(i64)1";
  for (const Statement* row : tile.rows) count += concat(" * ", values.extent(row->extent));
  return count;
}

// Whether what a load reads along eight columns lies side by side, from a multiple of eight on.
bool is_piece(const Scalar& load, std::size_t columns) {
  if (load->bounds != Bounds::Inside) return false;
  const Dims& view = load->view;
  const std::vector<Scalar> at(load->args.begin(),
                               load->args.begin() + static_cast<std::ptrdiff_t>(view.size()));
  if (nests::stride_along(at, view, columns) != nests::Stride::Unit) return false;
  std::size_t last = view.size();
  while (last > 0 && view[last - 1] == Dim(1)) --last;
  if (last == 0 || at[last - 1]->kind != ScalarKind::Loop || at[last - 1]->id != columns)
    return false;
  return last == 1 || (view[last - 1].is_constant() && view[last - 1].constant() % kTogether == 0);
}

// What is computed of sums of eight columns, of what is fetched for it, and where it goes, by the
// places of loops that run as one and of the first column.
void write_finish(const LoopNest& nest, const ProductTile& tile, Lines& lines,
                  ValueWriter& values) {
  // Positions of a row's loops, and of what is computed of sums there.
  const auto open_at_row = [&](const std::string& head) {
    lines.open(head);
    lines.add("i32 rest = row;");
    for (std::size_t k = tile.rows.size(); k-- > 0;) {
      const std::string name = loop_name(tile.rows[k]->id);
      values.name_loop(tile.rows[k]->id, name);
      const std::string count = values.extent(tile.rows[k]->extent);
      lines.add(k == 0 ? concat("const i32 ", name, " = rest;")
                       : concat("const i32 ", name, " = rest % (i32)", count, "; rest /= (i32)",
                                count, ";"));
    }
    values.name_loop(tile.columns->id, "column");
    values.begin_statement();
  };
  const auto close = [&] {
    lines.close();
    lines.add(";");
  };
  open_at_row("const auto place = [&](i32 row, i32 column) -> i64");
  lines.add(
      concat("return ", values.place(tile.store.indices, tile.store.view, false).offset, ";"));
  close();
  std::vector<Scalar> pieces;
  nests::for_each_load({tile.store}, [&](const Scalar& load) {
    if (is_piece(load, tile.columns->id)) pieces.push_back(load);
  });
  std::unordered_map<const ScalarNode*, ValueWriter::PackedLoad> packed;
  std::string members;
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    members += concat("Eight<", stored_type(nest.buffers[pieces[k]->id].dtype), "> q", k, "; ");
    packed[&pieces[k].node()] = {concat("fetched.q", k), ""};
  }
  lines.add(concat("struct Fetched { ", members, "};"));
  open_at_row("const auto fetch = [&](i32 row, i32 column) -> Fetched");
  lines.add("Fetched fetched;");
  for (std::size_t k = 0; k < pieces.size(); ++k) {
    const NestBuffer& from = nest.buffers[pieces[k]->id];
    const std::vector<Scalar> at(
        pieces[k]->args.begin(),
        pieces[k]->args.begin() + static_cast<std::ptrdiff_t>(pieces[k]->view.size()));
    const std::string offset = values.place(at, pieces[k]->view, false).offset;
    lines.add(concat("fetched.q", k, " = load_eight<", stored_type(from.dtype), ">(", from.name,
                     " + ", offset, ");"));
  }
  lines.add("return fetched;");
  close();
  const bool has_bytes = tile.has_bytes();
  values.set_narrow(info(tile.result_dtype).storage_bytes == 2);
  values.set_packed(std::move(packed));
  const std::string sum = has_bytes ? "i32" : "float";
  open_at_row(concat("const auto finish = [&](const ", sum,
                     "* sums, const Fetched& fetched, i32 row, i32 column) -> Eight<",
                     value_type(tile), ">"));
  lines.add(concat("Eight<", value_type(tile), "> made;"));
  lines.open("UNROLL for (int v = 0; v < 8; ++v)");
  lines.add(concat("const ", sum, " ", values.local(tile.sum), " = sums[v];"));
  values.set_lanes(tile.columns->id, 8, false);
  values.set_in_lanes(true);
  const std::string value = values.value(tile.store.value);
  lines.add(concat("made.at[v] = ",
                   has_bytes ? to_stored(tile.result_dtype, value) : concat("(float)(", value, ")"),
                   ";"));
  lines.close();
  lines.add("return made;");
  close();
}

std::string format_of(const ProductTile& tile) {
  if (tile.dtype == DType::F32) return "FormatTf32";
  if (!tile.has_bytes()) return tile.dtype == DType::F16 ? "FormatF16" : "FormatBf16";
  const auto is_signed = [](DType dtype) { return dtype == DType::I8 ? "true" : "false"; };
  return concat("FormatBytes<", is_signed(tile.dtype), ", ", is_signed(tile.b_dtype), ">");
}

}  // namespace

void write_product(const LoopNest& nest, const ProductTile& tile, Lines& lines,
                   ValueWriter& values) {
  write_finish(nest, tile, lines, values);
  const std::int64_t depth = tile_depth(tile.dtype),
                     blocks = (tile.inner_count + depth - 1) / depth;
  lines.add(concat("product_tiles<", format_of(tile), ", ", kProductTile, ", ",
                   tile.is_b_turned ? "true" : "false", ", ", value_type(tile),
                   ">(&map_a, &map_b, ", row_count(tile, values), ", ", tile.column_count,
                   ", MatrixRows{", blocks, "}, ", nest.buffers[tile.store.id].name,
                   ", fetch, finish, place);"));
}

void write_convolution(const LoopNest& nest, const ConvolutionTile& tile, Lines& lines,
                       ValueWriter& values) {
  write_finish(nest, tile.product, lines, values);
  std::string numbers;
  for (const std::int64_t number :
       {tile.channels, tile.rows, tile.columns, tile.outputs, tile.window_columns, tile.rows_before,
        tile.columns_before, tile.row_stride, tile.column_stride, tile.row_dilation,
        tile.column_dilation})
    numbers += concat(numbers.empty() ? "" : ", ", number);
  lines.add(concat("const WindowPixels source = {", tile.stage_count(), ", {", numbers, "}};"));
  const std::string pixels = row_count(tile.product, values), format = format_of(tile.product),
                    value = value_type(tile.product),
                    behind = concat(nest.buffers[tile.product.store.id].name,
                                    ", fetch, finish, place);");
  if (tile.is_large) {
    lines.add(concat("product_tiles<", format, ", ", tile.tile_outputs, ", false, ", value,
                     ">(&map_a, &map_b, ", pixels, ", ", tile.outputs, ", source, ", behind));
  } else {
    lines.add(concat("convolution_tile<", format, ", ", tile.cluster, ", ", value,
                     ">(&map_a, &map_b, ", pixels, ", source, ", behind));
  }
}

void write_weight_gradient(const LoopNest& nest, const WeightGradientTile& tile, Lines& lines,
                           ValueWriter& values) {
  std::vector<std::string> numbers;
  const Dims &image = tile.image->view, &gradient = tile.gradient->view;
  for (const Dim& dim :
       {gradient[0], image[1], image[2], image[3], gradient[1], gradient[2], gradient[3],
        Dim(tile.rows_before), Dim(tile.columns_before), tile.images->extent, tile.lines->extent,
        tile.groups->extent, tile.bands->extent})
    numbers.push_back(concat("(i32)", values.extent(dim)));
  lines.add(concat("const WeightGradient shape = {", join(numbers, ", "), "};"));
  lines.add(concat("weight_gradient_units<", tile.rows->extent.constant(), ", ",
                   strip_columns(tile), ">(&map_a, &map_b, ", nest.buffers[tile.result].name,
                   ", shape);"));
}

void write_mma(const LoopNest& nest, const MmaTile& tile, Lines& lines, ValueWriter& values) {
  const ProductTile& product = tile.product;
  write_finish(nest, product, lines, values);
  const auto element_bytes = static_cast<std::int64_t>(info(product.dtype).storage_bytes);
  const auto address = [&](const Scalar& load) {
    return concat("(const u8*)", nest.buffers[load->id].name);
  };
  // Groups are rows of what follows the sums, and blocks of their own.
  std::string rows = row_count(product, values), of_a = address(product.a),
              of_b = address(product.b);
  if (tile.groups == 1) {
    lines.add("const i32 tile = (i32)blockIdx.x, group = 0;");
  } else {
    rows = concat("(", rows, ") / ", tile.groups);
    lines.add(concat("const i32 tiles = (i32)((", rows, " + ", tile.rows - 1, ") / ", tile.rows,
                     ") * ", (product.column_count + tile.columns - 1) / tile.columns,
                     ", tile = (i32)blockIdx.x % tiles, group = (i32)blockIdx.x / tiles;"));
    of_a += concat(" + group * ", tile.convolution->channels * element_bytes);
    of_b += concat(" + (i64)group * ", product.column_count * product.b_pitch * element_bytes);
  }
  if (tile.convolution) {
    const ConvolutionTile& window = *tile.convolution;
    const Dims& image = window.image->view;
    const std::int64_t channel_bytes = window.channels * element_bytes;
    std::string numbers;
    for (const std::int64_t number :
         {tile.groups * channel_bytes, channel_bytes, image[1].constant(), image[2].constant(),
          window.rows, window.columns, window.window_rows, window.window_columns,
          window.rows_before, window.columns_before, window.row_stride, window.column_stride,
          window.row_dilation, window.column_dilation})
      numbers += concat(", ", number);
    lines.add(concat("const WindowLines a = {", of_a, ", (i32)(", rows, ")", numbers, "};"));
  } else {
    lines.add(concat("const MatrixLines a = {", of_a, ", ", product.a_pitch * element_bytes,
                     ", (i32)(", rows, "), ", product.inner_count * element_bytes, "};"));
  }
  const std::int64_t b_lines = product.is_b_turned ? product.inner_count : product.column_count,
                     along = product.is_b_turned ? product.column_count : product.inner_count;
  lines.add(concat("const MatrixLines b = {", of_b, ", ", product.b_pitch * element_bytes, ", ",
                   b_lines, ", ", along * element_bytes, "};"));
  const std::int64_t blocks =
      (product.inner_count * element_bytes + kMmaTileBytes - 1) / kMmaTileBytes;
  lines.add(concat("mma_tile<", format_of(product), ", ", tile.rows, ", ", tile.columns, ", ",
                   product.is_b_turned ? "true" : "false", ", ", kMmaSharedBytes, ", ",
                   value_type(product), ">(tile, group, ", tile.groups, ", a, b, ", blocks, ", ",
                   rows, ", ", product.column_count, ", ", nest.buffers[product.store.id].name,
                   ", fetch, finish, place);"));
}

}  // namespace tenon::codegen::cuda
