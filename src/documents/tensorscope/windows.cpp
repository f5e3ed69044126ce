#include "documents/tensorscope/windows.h"

#include "documents/tensorscope/names.h"
#include "documents/tensorscope/tf_ops.h"

#include <algorithm>
#include <array>

namespace tenon::documents::tensorscope {
namespace {

constexpr std::int64_t max_shared_kernel = 16;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns the smallest stride with which `count` windows start within `room`.
std::optional<std::int64_t> smallest_stride(std::int64_t room, std::int64_t count) {
  if (room < 1 || count < 1 || count > room) return std::nullopt;
  const std::int64_t stride = ceil_div(room, count);
  if (ceil_div(room, stride) != count) return std::nullopt;
  return stride;
}

std::optional<Windows> solve_rule(const std::vector<std::int64_t>& from,
                                  const std::vector<std::int64_t>& to,
                                  const std::vector<std::int64_t>& kernel, bool is_same) {
  Windows windows{kernel, {}, is_same, std::vector<std::int64_t>(2 * from.size(), 0)};
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    const auto stride =
        smallest_stride(is_same ? from[axis] : from[axis] - kernel[axis] + 1, to[axis]);
    if (!stride) return std::nullopt;
    windows.strides.push_back(*stride);
    if (!is_same) continue;
    const std::int64_t total =
        std::max<std::int64_t>((to[axis] - 1) * *stride + kernel[axis] - from[axis], 0);
    windows.pads[axis] = total / 2;
    windows.pads[from.size() + axis] = total - total / 2;
  }
  return windows;
}

bool overlaps_or_touches(const Windows& windows) {
  for (std::size_t axis = 0; axis < windows.kernel.size(); ++axis) {
    if (windows.strides[axis] > windows.kernel[axis]) return false;
  }
  return true;
}

struct PoolWindow {
  std::size_t row = 0;
  std::vector<std::int64_t> from, to;
};

std::optional<Windows> square_window(const PoolWindow& pool, std::int64_t kernel) {
  auto windows =
      solve_windows(pool.from, pool.to, std::vector<std::int64_t>(pool.from.size(), kernel));
  if (windows && !overlaps_or_touches(*windows)) return std::nullopt;
  return windows;
}

// The smallest window along each axis separately; strides do not exceed the window.
std::optional<Windows> own_windows(const PoolWindow& pool) {
  std::vector<std::int64_t> kernel;
  for (std::size_t axis = 0; axis < pool.from.size(); ++axis) {
    const std::int64_t from = pool.from[axis], to = pool.to[axis];
    if (to < 1 || to > from) return std::nullopt;
    // (from - k + 1) / stride rounds up to `to` for k = stride = ceil(from / to), or without a
    // stride for k = from - to + 1.
    const std::int64_t tight = std::max<std::int64_t>(ceil_div(from, to), to == from ? 1 : 2);
    const auto stride = smallest_stride(from - tight + 1, to);
    kernel.push_back(stride && *stride <= tight ? tight : from - to + 1);
  }
  return solve_windows(pool.from, pool.to, kernel);
}

void solve_pools(const std::vector<PoolWindow>& pools, std::map<std::size_t, Windows>& found) {
  std::vector<PoolWindow> left;
  for (const PoolWindow& pool : pools) {
    // A single result per image: global pooling.
    if (std::ranges::all_of(pool.to, [](std::int64_t count) { return count == 1; })) {
      if (auto whole = solve_windows(pool.from, pool.to, pool.from))
        found.emplace(pool.row, *whole);
    } else {
      left.push_back(pool);
    }
  }
  for (std::int64_t kernel = 2; kernel <= max_shared_kernel; ++kernel) {
    std::vector<Windows> all;
    for (const PoolWindow& pool : left) {
      const auto windows = square_window(pool, kernel);
      if (!windows) break;
      all.push_back(*windows);
    }
    if (all.size() != left.size()) continue;
    for (std::size_t k = 0; k < left.size(); ++k) found.emplace(left[k].row, all[k]);
    return;
  }
  for (const PoolWindow& pool : left) {
    std::optional<Windows> windows;
    for (std::int64_t kernel = 2; kernel <= max_shared_kernel && !windows; ++kernel) {
      windows = square_window(pool, kernel);
    }
    if (!windows) windows = own_windows(pool);
    if (windows) found.emplace(pool.row, *windows);
  }
}

bool is_image(const TensorShape& shape) { return shape.extents.size() == 4; }

// A tensor whose layout several rows share: an output, or the source of an input.
struct Shared {
  std::vector<std::size_t> inputs;
  bool has_output = false;
};
Shared shared_layout(const Row& row, std::string_view op) {
  Shared shared;
  if (layout_transpose(row.node) || op == "Transpose" || op == "Reshape") return shared;
  const OpInfo* known = find_tf_op(op);
  const bool has_filter = op == "Conv2D" || op == "DepthwiseConv2dNative";
  for (std::size_t input = 0; input < row.inputs.size(); ++input) {
    const bool is_filter =
        (has_filter && input == 1) || (op == "Conv2DBackpropInput" && input == 1);
    if (is_image(row.inputs[input]) && !is_filter) shared.inputs.push_back(input);
  }
  shared.has_output = row.outputs.size() >= 1 && is_image(row.outputs[0]) &&
                      op != "Conv2DBackpropFilter" && known != nullptr &&
                      known->op_class != OpClass::Source;
  return shared;
}

}  // namespace

std::string_view layout_text(ImageLayout layout) {
  constexpr std::array<std::string_view, 3> texts = {"", "NHWC", "NCHW"};
  return texts[static_cast<std::size_t>(layout)];
}

std::optional<Windows> solve_windows(const std::vector<std::int64_t>& from,
                                     const std::vector<std::int64_t>& to,
                                     const std::vector<std::int64_t>& kernel) {
  const auto same = solve_rule(from, to, kernel, true), valid = solve_rule(from, to, kernel, false);
  if (!same || !valid) return same ? same : valid;
  const auto sum = [](const Windows& windows) { return windows.strides[0] + windows.strides[1]; };
  return sum(*valid) < sum(*same) ? valid : same;
}

std::optional<ImageShapes> image_shapes(const Row& row, std::string_view op) {
  ImageShapes shapes;
  const auto take = [&](std::size_t inputs, auto image, auto result, auto filter) {
    if (row.inputs.size() != inputs || row.outputs.size() != 1) return false;
    shapes = {image(), result(), filter()};
    return true;
  };
  const auto input = [&](std::size_t k) { return [&row, k] { return &row.inputs[k]; }; };
  const auto output = [&row] { return &row.outputs[0]; };
  const auto none = []() -> const TensorShape* { return nullptr; };
  bool fits = false;
  if (op == "Conv2D" || op == "DepthwiseConv2dNative") fits = take(2, input(0), output, input(1));
  if (op == "Conv2DBackpropInput") fits = take(3, output, input(2), input(1));
  if (op == "Conv2DBackpropFilter") fits = take(3, input(0), input(2), output);
  if (op == "MaxPool" || op == "AvgPool") fits = take(1, input(0), output, none);
  if (op == "MaxPoolGrad") fits = take(3, input(0), input(1), none);
  if (op == "AvgPoolGrad") fits = take(2, output, input(1), none);
  if (!fits || !is_image(*shapes.image) || !is_image(*shapes.result)) return std::nullopt;
  if (shapes.filter != nullptr && !is_image(*shapes.filter)) return std::nullopt;
  return shapes;
}

ImageLayout layout_from_shapes(const Row& row, std::string_view op) {
  const auto decide = [](bool last, bool first) {
    return last == first ? ImageLayout::Unknown
           : last        ? ImageLayout::ChannelsLast
                         : ImageLayout::ChannelsFirst;
  };
  if (const auto shapes = image_shapes(row, op)) {
    const auto &x = shapes->image->extents, &y = shapes->result->extents;
    if (shapes->filter == nullptr) return decide(x[3] == y[3], x[1] == y[1]);
    const auto& w = shapes->filter->extents;
    const std::int64_t outputs = op == "DepthwiseConv2dNative" ? w[2] * w[3] : w[3];
    return decide(x[3] == w[2] && y[3] == outputs, x[1] == w[2] && y[1] == outputs);
  }
  // TensorFlow supports only this layout
  if (op == "LRN" || op == "LRNGrad") return ImageLayout::ChannelsLast;
  const bool adds_bias =
      op == "BiasAdd" && row.inputs.size() == 2 && row.inputs[1].extents.size() == 1;
  const bool sums = op == "BiasAddGrad" && row.inputs.size() == 1 && row.outputs.size() == 1 &&
                    row.outputs[0].extents.size() == 1;
  if ((adds_bias || sums) && is_image(row.inputs[0])) {
    const std::int64_t channels = (adds_bias ? row.inputs[1] : row.outputs[0]).extents[0];
    return decide(row.inputs[0].extents[3] == channels, row.inputs[0].extents[1] == channels);
  }
  return ImageLayout::Unknown;
}

std::vector<ImageLayout> find_layouts(const TensorScopeTable& table, const DataFlow& step) {
  std::vector<ImageLayout> layouts(table.rows.size(), ImageLayout::Unknown);
  const auto visit = [&](std::size_t at) {
    const Row& row = table.rows[at];
    const auto source = [&](std::size_t input) { return step.sources[at][input].row; };
    if (const auto transpose = layout_transpose(row.node)) {
      const auto from = transpose->to_nchw ? ImageLayout::ChannelsLast : ImageLayout::ChannelsFirst;
      layouts[at] = transpose->to_nchw ? ImageLayout::ChannelsFirst : ImageLayout::ChannelsLast;
      if (!row.inputs.empty() && source(0) >= 0 && is_image(row.inputs[0])) {
        layouts[static_cast<std::size_t>(source(0))] = from;
      }
      return;
    }
    const Shared shared = shared_layout(row, step.ops[at]);
    ImageLayout common = layout_from_shapes(row, step.ops[at]);
    if (common == ImageLayout::Unknown && shared.has_output) common = layouts[at];
    for (const std::size_t input : shared.inputs) {
      if (common != ImageLayout::Unknown) break;
      if (source(input) >= 0) common = layouts[static_cast<std::size_t>(source(input))];
    }
    if (common == ImageLayout::Unknown) return;
    if (shared.has_output) layouts[at] = common;
    for (const std::size_t input : shared.inputs) {
      if (source(input) < 0) continue;
      ImageLayout& known = layouts[static_cast<std::size_t>(source(input))];
      if (known == ImageLayout::Unknown) known = common;
    }
  };
  for (const std::size_t at : step.order) visit(at);
  for (auto at = step.order.rbegin(); at != step.order.rend(); ++at) visit(*at);
  for (const std::size_t at : step.order) visit(at);
  return layouts;
}

std::vector<std::int64_t> spatial_extents(const TensorShape& image, ImageLayout layout) {
  const std::size_t first = layout == ImageLayout::ChannelsFirst ? 2 : 1;
  return {image.extents[first], image.extents[first + 1]};
}

std::map<std::size_t, Windows> find_windows(const TensorScopeTable& table, const DataFlow& step,
                                            const std::vector<ImageLayout>& layouts) {
  std::map<std::size_t, Windows> found;
  std::map<std::string_view, std::vector<PoolWindow>> pools;
  for (const std::size_t at : step.order) {
    const Row& row = table.rows[at];
    const std::string& op = step.ops[at];
    const auto shapes = image_shapes(row, op);
    if (!shapes) continue;
    ImageLayout layout = layout_from_shapes(row, op);
    if (layout == ImageLayout::Unknown) layout = layouts[at];
    const auto from = spatial_extents(*shapes->image, layout),
               to = spatial_extents(*shapes->result, layout);
    if (shapes->filter == nullptr) {
      pools[op.starts_with("Max") ? "MaxPool" : "AvgPool"].push_back({at, from, to});
      continue;
    }
    const auto& filter = shapes->filter->extents;
    if (const auto windows = solve_windows(from, to, {filter[0], filter[1]}))
      found.emplace(at, *windows);
  }
  for (const auto& [kind, list] : pools) solve_pools(list, found);
  return found;
}

}  // namespace tenon::documents::tensorscope
