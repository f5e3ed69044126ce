#include "documents/relay/op_table.h"

#include "base/text.h"
#include "documents/relay/token_cursor.h"
#include "documents/relay/window.h"

#include <algorithm>
#include <map>

namespace tenon::documents::relay {
namespace {

// Attributes in the order of declaration; one without a value is required. A row may have several
// names. `?` in a name expands to 1, 2 and 3 spatial axes: `1*` is a number per axis, `@` their
// letters.
struct OpTableRow {
  std::string_view names;
  std::size_t least, most;
  std::string_view attributes;
};

constexpr std::string_view kReduction = "axis=None, keepdims=False, exclude=False";
constexpr std::string_view kNorm = "axis=1, epsilon=1e-05f, center=True, scale=True";

constexpr OpTableRow kRows[] = {
    {"nn.conv1d", 2, 2,
     "strides=[1], padding=[0, 0], dilation=[1], groups=1, channels=None, kernel_size=None, "
     "data_layout=\"NCW\", kernel_layout=\"OIW\", out_layout=\"\", out_dtype=\"\""},
    {"nn.conv?d", 2, 2,
     "strides=[1*], padding=[0*], dilation=[1*], groups=1, channels=None, kernel_size=None, "
     "data_layout=\"NC@\", kernel_layout=\"OI@\", out_layout=\"\", out_dtype=\"\""},
    {"nn.conv?d_transpose", 2, 2,
     "channels=None, kernel_size=None, strides=[1*], output_padding=[0*], padding=[0*], "
     "dilation=[1*], groups=1, data_layout=\"NC@\", kernel_layout=\"OI@\", out_layout=\"\", "
     "out_dtype=\"\""},
    {"nn.dense", 2, 2, "units, out_dtype=\"\""},
    {"nn.matmul", 2, 2, "units, out_dtype=\"\", transpose_a=False, transpose_b=False"},
    {"nn.batch_matmul", 2, 2, "out_dtype=\"\", transpose_a=False, transpose_b=False"},
    {"nn.bias_add", 2, 2, "axis=1"},
    {"nn.batch_norm", 5, 5, kNorm},
    {"nn.layer_norm", 3, 3, "axis=-1, epsilon=1e-05f, center=True, scale=True"},
    {"nn.instance_norm", 3, 3, kNorm},
    {"nn.group_norm", 3, 3, "num_groups, axis=1, epsilon=1e-05f, center=True, scale=True"},
    {"nn.l2_normalize", 1, 1, "eps, axis=None"},
    {"nn.lrn", 1, 1, "size=5, axis=1, bias=2f, alpha=0.0001f, beta=0.75f"},
    {"nn.max_pool?d", 1, 1,
     "pool_size, strides=[1*], dilation=[1*], padding=[0*], layout=\"NC@\", out_layout=\"\", "
     "ceil_mode=False"},
    {"nn.avg_pool?d", 1, 1,
     "pool_size, strides=[1*], dilation=[1*], padding=[0*], layout=\"NC@\", out_layout=\"\", "
     "ceil_mode=False, count_include_pad=False"},
    {"nn.global_avg_pool?d nn.global_max_pool?d", 1, 1, "layout=\"NC@\", out_layout=\"\""},
    {"nn.adaptive_avg_pool?d nn.adaptive_max_pool?d", 1, 1,
     "output_size=[], layout=\"NC@\", out_layout=\"\""},
    {"nn.pad", 1, 2, "pad_width, pad_mode=\"constant\""},
    {"nn.mirror_pad", 1, 1, "mode=\"SYMMETRIC\", pad_width"},
    {"nn.softmax nn.log_softmax nn.fast_softmax", 1, 1, "axis=-1"},
    {"nn.relu nn.batch_flatten", 1, 1, ""},
    {"nn.leaky_relu", 1, 1, "alpha=0.25f"},
    {"nn.prelu", 2, 2, "axis=1"},
    {"nn.dropout", 1, 1, "rate=0.5f"},
    {"nn.upsampling", 1, 1,
     "scale_h=1f, scale_w=1f, layout=\"NCHW\", method=\"nearest_neighbor\", align_corners=False"},
    {"nn.upsampling3d", 1, 1,
     "scale_d=1f, scale_h=1f, scale_w=1f, layout=\"NCDHW\", method=\"nearest_neighbor\", "
     "coordinate_transformation_mode=\"half_pixel\""},
    {"nn.depth_to_space nn.space_to_depth", 1, 1, "block_size, layout=\"NCHW\", mode=\"DCR\""},
    {"image.resize2d", 1, 1,
     "size=None, roi=None, layout=\"NCHW\", method=\"linear\", "
     "coordinate_transformation_mode=\"half_pixel\", rounding_method=\"round\", cubic_alpha=-0.5f, "
     "cubic_exclude=0, extrapolation_value=0f, out_dtype=\"\""},
    {"sum mean max min prod all any logsumexp", 1, 1, kReduction},
    {"argmax argmin", 1, 1, "axis=None, keepdims=False, select_last_index=False, exclude=False"},
    {"variance", 2, 2, "axis=None, keepdims=False, exclude=False, unbiased=False"},
    {"add subtract multiply divide floor_divide trunc_divide mod floor_mod trunc_mod power maximum "
     "minimum equal not_equal less less_equal greater greater_equal logical_and logical_or "
     "logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift",
     2, 2, ""},
    {"exp log log2 log10 sqrt rsqrt sin cos tan sinh cosh asin acos atan asinh acosh atanh abs "
     "negative ceil floor round trunc sign sigmoid tanh erf fast_exp fast_erf fast_tanh "
     "logical_not "
     "bitwise_not isnan isfinite isinf copy zeros_like ones_like annotation.stop_fusion "
     "annotation.bitpack_start annotation.bitpack_end annotation.checkpoint",
     1, 1, ""},
    {"annotation.cast_hint", 1, 1, "dtype"},
    {"on_device", 1, 1,
     "virtual_device=None, constrain_result=False, constrain_body=True, device_type=None, "
     "is_fixed=False"},
    {"device_copy", 1, 1,
     "src_dev_type=None, dst_dev_type=None, src_virtual_device=None, dst_virtual_device=None"},
    {"qnn.quantize", 3, 3, "out_dtype=\"int8\", axis=-1"},
    {"qnn.dequantize", 3, 3, "axis=-1, out_dtype=\"float32\""},
    {"qnn.requantize", 5, 5,
     "axis=-1, rounding=\"None\", compute_dtype=\"None\", out_dtype=\"int8\""},
    {"qnn.conv2d", 6, 6,
     "strides=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1, channels=None, kernel_size=None, "
     "data_layout=\"NCHW\", kernel_layout=\"OIHW\", out_layout=\"\", out_dtype=\"int32\""},
    {"qnn.dense", 6, 6, "units, out_dtype=\"int32\""},
    {"qnn.batch_matmul", 6, 6, "out_dtype=\"int32\""},
    {"qnn.add qnn.subtract qnn.mul", 8, 8, "lhs_axis=-1, rhs_axis=-1"},
    {"qnn.abs qnn.erf qnn.exp qnn.hardswish qnn.log qnn.rsqrt qnn.sigmoid qnn.sqrt qnn.tanh", 5, 5,
     ""},
    {"qnn.leaky_relu", 5, 5, "alpha"},
    {"qnn.softmax", 5, 5, "axis=-1"},
    {"qnn.avg_pool2d", 5, 5,
     "pool_size, strides=[1, 1], padding=[0, 0], dilation=[1, 1], ceil_mode=False, "
     "count_include_pad=True, layout=\"NCHW\", out_layout=\"\""},
    {"qnn.conv2d_transpose", 6, 6,
     "channels=None, kernel_size=None, strides=[1, 1], output_padding=[0, 0], padding=[0, 0], "
     "dilation=[1, 1], groups=1, data_layout=\"NCHW\", kernel_layout=\"OIHW\", out_layout=\"\", "
     "out_dtype=\"int32\""},
    {"nn.nll_loss", 3, 3, "reduction=\"mean\", ignore_index=-100"},
    {"nn.cross_entropy nn.cross_entropy_with_logits", 2, 2, ""},
    {"collapse_sum_like", 2, 2, ""},
    {"annotation.compiler_begin annotation.compiler_end", 1, 1, "compiler"},
    {"dyn.reshape", 2, 2, "newshape=None, allowzero=False"},
    {"dyn.broadcast_to", 2, 2, "dtype=\"\""},
    {"dyn.tile", 2, 2, "reps=None"},
    {"argwhere", 1, 1, ""},
    {"vision.roi_align", 2, 2,
     "pooled_size, spatial_scale, sample_ratio=-1, layout=\"NCHW\", mode=\"avg\""},
    {"image.grid_sample", 2, 2,
     "method=\"bilinear\", layout=\"NCHW\", padding_mode=\"zeros\", align_corners=True"},
    {"nn.dilate", 1, 1, "strides, dilation_value=0f64"},
    {"qnn.concatenate", 5, 5, "axis=0"},
    {"full_like broadcast_to_like reshape_like cast_like slice_like", 2, 2, ""},
    {"clip", 1, 1, "a_min, a_max"},
    {"cast", 1, 1, "dtype"},
    {"reinterpret", 1, 1, "dtype"},
    {"fixed_point_multiply", 1, 1, "multiplier, shift"},
    {"relay.op.annotation.simulated_quantize", 4, 4, "kind, sign=True, rounding=\"round\""},
    {"reshape contrib_reverse_reshape", 1, 1, "newshape, allowzero=False"},
    {"transpose", 1, 1, "axes"},
    {"squeeze", 1, 1, "axis=None"},
    {"expand_dims", 1, 1, "axis, num_newaxis=1"},
    {"concatenate stack", 1, 1, "axis=0"},
    {"split", 1, 1, "indices_or_sections, axis=0"},
    {"strided_slice", 1, 1, "begin, end, strides=None, slice_mode=\"end\", axes=None"},
    {"take", 2, 2, "batch_dims=0, axis=None, mode=\"clip\""},
    {"gather", 2, 2, "axis"},
    {"gather_nd", 2, 2, "batch_dims=0, index_rank=None"},
    {"scatter scatter_add", 3, 3, "axis=0"},
    {"scatter_elements", 3, 3, "axis=0, reduction=\"update\""},
    {"scatter_nd", 3, 3, "mode=\"update\""},
    {"where", 3, 3, ""},
    {"reverse", 1, 1, "axis"},
    {"reverse_sequence", 2, 2, "seq_axis=1, batch_axis=0"},
    {"tile", 1, 1, "reps"},
    {"repeat", 1, 1, "repeats, axis=None"},
    {"zeros ones", 0, 0, "shape, dtype"},
    {"full", 1, 1, "shape, dtype=\"\""},
    {"broadcast_to", 1, 1, "shape, dtype=\"\""},
    {"arange", 3, 3, "start=None, stop=None, step=None, dtype"},
    {"one_hot", 3, 3, "depth, axis=-1, dtype"},
    {"cumsum cumprod", 1, 1, "axis=None, dtype=\"\", exclusive=False"},
    {"topk", 1, 1, "k=1, axis=-1, ret_type=\"both\", is_ascend=False, dtype=\"\""},
    {"argsort", 1, 1, "axis=-1, is_ascend=True, dtype=\"\""},
    {"sort", 1, 1, "axis=-1, is_ascend=True"},
    {"trilu", 2, 2, "upper=True"},
    {"einsum", 1, 1, "equation"},
    {"shape_of ndarray_size", 1, 1, "dtype=\"\""},
    {"layout_transform", 1, 1, "src_layout, dst_layout"},
};

std::string for_axes(std::string_view text, std::size_t count) {
  std::string made;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '*') {
      for (std::size_t axis = 1; axis < count; ++axis) made += {',', ' ', text[k - 1]};
    } else {
      made += text[k] == '?'   ? std::to_string(count)
              : text[k] == '@' ? spatial_letters(count)
                               : std::string(1, text[k]);
    }
  }
  return made;
}

std::vector<AttributeDef> read_attributes(std::string_view text) {
  const std::vector<Token> tokens = tokenize(text, "table");
  TokenCursor cursor(tokens, text, "table");
  std::vector<AttributeDef> attributes;
  while (cursor.peek().kind != Token::Kind::End) {
    AttributeDef def{std::string(cursor.next().text), std::nullopt};
    if (cursor.take("=")) def.default_value = parse_attribute_value(cursor);
    attributes.push_back(std::move(def));
    cursor.take(",");
  }
  return attributes;
}

const std::map<std::string, OperatorDef, std::less<>>& table() {
  static const std::map<std::string, OperatorDef, std::less<>> operators = [] {
    std::map<std::string, OperatorDef, std::less<>> all;
    for (const OpTableRow& row : kRows) {
      const bool is_family = row.names.find('?') != std::string_view::npos;
      for (std::size_t axes = 1; axes <= (is_family ? 3 : 1); ++axes) {
        const std::vector<AttributeDef> attributes =
            read_attributes(for_axes(row.attributes, axes));
        for (const std::string& name : split(for_axes(row.names, axes), ' '))
          all.try_emplace(name, name, row.least, row.most, attributes);
      }
    }
    return all;
  }();
  return operators;
}

}  // namespace

const AttributeDef* OperatorDef::find_attribute(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const AttributeDef& def) { return def.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

const OperatorDef* find_operator(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

}  // namespace tenon::documents::relay
