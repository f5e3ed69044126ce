#include "codegen/cuda/product_writer.h"

#include "base/error.h"
#include "base/text.h"

namespace tenon::codegen::cuda {

namespace {

// What is computed of a sum, and where it goes, by the places of loops that run as one and of a
// column.
void write_finish(const ProductTile& tile, Lines& lines, ValueWriter& values) {
  const bool has_bytes = tile.has_bytes();
  // Positions of a row's loops, and of what is computed of a sum there.
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
  open_at_row("const auto place = [&](i32 row, i32 column) -> i64");
  lines.add(
      concat("return ", values.place(tile.store.indices, tile.store.view, false).offset, ";"));
  lines.close();
  lines.add(";");
  values.set_narrow(!has_bytes);
  const std::string result = has_bytes ? stored_type(tile.result_dtype) : "float";
  open_at_row(concat("const auto finish = [&](", has_bytes ? "i32 " : "float ",
                     values.local(tile.sum), ", i32 row, i32 column) -> ", result));
  const std::string value = values.value(tile.store.value);
  lines.add(concat("return ",
                   has_bytes ? to_stored(tile.result_dtype, value) : concat("(float)(", value, ")"),
                   ";"));
  lines.close();
  lines.add(";");
}

std::string format_of(const ProductTile& tile) {
  if (!tile.has_bytes()) return tile.dtype == DType::F16 ? "FormatF16" : "FormatBf16";
  const auto is_signed = [](DType dtype) { return dtype == DType::I8 ? "true" : "false"; };
  return concat("FormatBytes<", is_signed(tile.dtype), ", ", is_signed(tile.b_dtype), ">");
}

}  // namespace

void write_product(const LoopNest& nest, const ProductTile& tile, Lines& lines,
                   ValueWriter& values) {
  write_finish(tile, lines, values);
  lines.add(concat("product_tiles<", format_of(tile), ", ", tile.is_b_turned ? "true" : "false",
                   ">(&map_a, &map_b, ", values.extent(tile.row_count), ", ", tile.column_count,
                   ", ", tile.inner_count, ", ", nest.buffers[tile.store.id].name,
                   ", finish, place);"));
}

void write_convolution(const LoopNest& nest, const ConvolutionTile& tile, Lines& lines,
                       ValueWriter& values) {
  write_finish(tile.product, lines, values);
  const Dims& image = tile.image->view;
  std::string numbers;
  for (const std::int64_t number :
       {tile.batch, image[1].constant(), image[2].constant(), tile.channels, tile.rows,
        tile.columns, tile.outputs, tile.window_rows, tile.window_columns, tile.rows_before,
        tile.columns_before, tile.row_stride, tile.column_stride, tile.row_dilation,
        tile.column_dilation})
    numbers += concat(numbers.empty() ? "" : ", ", number);
  lines.add(concat("const Convolution shape = {", numbers, "};"));
  lines.add(concat("convolution_tile<", format_of(tile.product), ", ", tile.tile_rows, ", ",
                   tile.tile_columns, ", ", tile.cluster, ">(&map_a, &map_b, ",
                   nest.buffers[tile.product.store.id].name, ", shape, finish, place);"));
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

}  // namespace tenon::codegen::cuda
