#include "driver/random_graph/op_hints.h"

#include <algorithm>
#include <iterator>

namespace tenon {
namespace {

struct Hint {
  std::string_view op, text;
};

constexpr Hint kHints[] = {
    {"adagrad", "rate: F; step: i64; x: F a b; gradient: F a b; squares: F a b"},
    {"adam", "rate: F; step: i64; x: F a b; gradient: F a b; mean: F a b; squares: F a b"},
    {"affine_grid", "theta: F n 2 3; size = n c h w"},
    {"attention", "q: F b h s d; k: F b h t d; v: F b h t e"},
    {"attention", "q: F b h s d; k: F b h t d; v: F b h t e; mask: F s t"},
    {"attention", "q: F b h s d; k: F b h t d; v: F b h t e; mask: B b h s t"},
    {"attention", "q: F b 4 s d; k: F b 2 t d; v: F b 2 t e"},
    {"average_pool", "x: F n c h w; kernel_shape = 2 2"},
    {"average_pool", "x: F n c h; kernel_shape = 2"},
    {"average_pool_gradient", "dy: F n c 2 3; kernel_shape = 2 2; input_shape = 3 4"},
    {"batch_norm", "x: F n c h w; scale: F c; bias: F c; mean: F c; variance: F c"},
    {"batch_norm", "x: F n c; scale: F c; bias: F c; mean: F c; variance: F c"},
    {"batch_norm_training", "x: F n c h; scale: F c; bias: F c; mean: F c; variance: F c"},
    {"bit_cast", "x: f32 a b; to = i32"},
    {"bit_cast", "x: i16 a; to = f16"},
    {"cast_text", "x: F a"},
    {"cast_text", "x: string a; to = string"},
    {"center_crop_pad", "x: T a b; shape = c d"},
    {"clip", "x: T a b; min: T; max: T"},
    {"col2im", "x: F n 8 9; image_shape = 4 4; block_shape = 2 2"},
    {"compress", "x: T a b; condition: B a; axis = 0"},
    {"concat", "xs*2: T a b c"},
    {"concat", "xs*3: T a b"},
    {"conv", "x: F n c h w; w: F o c 2 2; b: F o"},
    {"conv", "x: F n c h w; w: F o c 1 1"},
    {"conv", "x: F n c h w; w: F c 1 3 3; b: F c; groups = c; pads = 1 1 1 1"},
    {"conv", "x: F n c l; w: F o c 3; pads = 1 1"},
    {"conv", "x: F n c 4 5; w: F o c 3 3; b: F o; strides = 2 1; pads = _ _ _ _"},
    {"conv_transpose", "x: F n c h w; w: F c o 2 2; b: F o"},
    {"conv_weight_gradient", "x: F n c 4 4; dy: F n o 3 3; kernel_shape = 2 2"},
    {"cumprod", "x: F a b; axis = 1"},
    {"cumsum", "x: T a b; axis = 0"},
    {"deform_conv", "x: F n c 4 4; w: F o c 2 2; offset: F n 8 3 3"},
    {"depth_to_space", "x: T n 4 h w; block = 2"},
    {"dequantize_linear", "x: i8 a b; scale: F"},
    {"dequantize_linear", "x: u8 a b; scale: F; zero_point: u8"},
    {"dequantize_linear", "x: i8 a b; scale: F b; zero_point: i8 b; axis = 1"},
    {"det", "x: F n m m"},
    {"dft", "x: F n l 1; axis = 1"},
    {"dft", "x: F n l 2; axis = 1; length = 4"},
    {"dropout", "x: F a b; ratio: F"},
    {"dropout", "x: F a b"},
    {"einsum", "xs: F i j; xs: F j k; equation = \"ij,jk->ik\""},
    {"einsum", "xs: F b i j; xs: F b k j; equation = \"bij,bkj->bik\""},
    {"einsum", "xs: F i j; equation = \"ij->ji\""},
    {"einsum_gradient", "dy: F i k; xs: F i j; xs: F j k; equation = \"ij,jk->ik\""},
    {"expand", "x: T 1 b; shape = a b"},
    {"expand", "x: T b; shape = a b"},
    {"fixed_point_multiply", "x: i32 a b; multiplier = 1610612736; shift = -2"},
    {"gather", "x: T a b; indices: I c"},
    {"gather", "x: T a b c; indices: I; axis = 1"},
    {"gather_elements", "x: T a b; indices: I a b"},
    {"gather_nd", "x: T a b; indices: I c 2"},
    {"gather_nd", "x: T a b c; indices: I a d 1; batch_dims = 1"},
    {"grid_sample", "x: F n c h w; grid: F n p q 2"},
    {"group_norm", "x: F n 4 h w; scale: F 4; bias: F 4; groups = 2"},
    {"instance_norm", "x: F n c h; scale: F c; bias: F c"},
    {"layer_norm", "x: F a b c; scale: F c; bias: F c"},
    {"layer_norm", "x: F a c; scale: F c"},
    {"log_softmax", "x: F a b"},
    {"lp_pool", "x: F n c h w; kernel_shape = 2 2"},
    {"lp_pool_gradient", "x: F n c 3 4; y: F n c 2 3; dy: F n c 2 3; kernel_shape = 2 2"},
    {"lrn", "x: F n c h w; size = 3"},
    {"lrn_gradient", "x: F n c h w; dy: F n c h w; size = 3"},
    {"matmul", "a: F m k; b: F k n"},
    {"matmul", "a: F b m k; b: F b k n"},
    {"matmul", "a: F b m k; b: F k n"},
    {"matmul", "a: F k; b: F k n"},
    {"matmul", "a: I m k; b: I k n"},
    {"max_pool", "x: F n c h w; kernel_shape = 2 2"},
    {"max_pool", "x: F n c h w; kernel_shape = 3 3; pads = 1 1 1 1; strides = 2 2"},
    {"max_pool_gradient", "x: F n c 3 4; dy: F n c 2 3; kernel_shape = 2 2"},
    {"max_roi_pool", "x: F n c h w; rois: F r 5; height = 2; width = 2"},
    {"max_unpool", "x: F n c 2 2; indices: i64 n c 2 2; kernel_shape = 2 2; strides = 2 2"},
    {"mean_variance_norm", "x: F n c h w"},
    {"mel_weight_matrix",
     "sample_rate: i64; lower_edge: F; upper_edge: F; mel_bins = 3; dft_length = 4"},
    {"momentum", "rate: F; step: i64; x: F a b; gradient: F a b; velocity: F a b"},
    {"multinomial", "x: F a b; sample_count = 3"},
    {"nll_loss", "x: F n c; target: I n"},
    {"nll_loss", "x: F n c; target: I n; weight: F c"},
    {"non_max_suppression", "boxes: f32 1 b 4; scores: f32 1 c b; max_boxes_per_class: i64"},
    {"one_hot", "indices: I a; values: T 2; depth = 3"},
    {"pad", "x: T a b; pads = _ _ _ _"},
    {"pad", "x: F n c h w; pads = 0 0 _ _ 0 0 _ _"},
    {"pad", "x: T a b; value: T; pads = _ 0 _ _"},
    {"prelu", "x: F n c h; slope: F c 1"},
    {"quantize_linear", "x: F a b; scale: F; zero_point: u8"},
    {"quantize_linear", "x: F a b; scale: F b; zero_point: i8 b; axis = 1"},
    {"random_normal", "shape = a b"},
    {"random_uniform", "shape = a"},
    {"range", "start: I; limit: I; delta: I"},
    {"regex_full_match", "x: string a; pattern = \"a*\""},
    {"requantize", "x: i32 a b; scale: f32; zero_point: i8"},
    {"reshape", "x: T a b c; shape = 0 -1"},
    {"reshape", "x: T a b; shape = -1 a"},
    {"reshape", "x: T a b c; shape = c -1 b"},
    {"reshape", "x: T a b; shape = b 1 a"},
    {"reshape", "x: T 4 6; shape = 2 2 -1"},
    {"resize", "x: F n c h w; scales = 1.0 1.0 2.0 0.5"},
    {"resize", "x: F n c h w; sizes = 3 4; axes = 2 3"},
    {"reverse_sequence", "x: T s b; lengths: i64 b"},
    {"rms_norm", "x: F a b c; scale: F c"},
    {"roi_align", "x: F n c 4 4; rois: F 2 4; batch_indices: i64 2; height = 2; width = 2"},
    {"rotary_embedding", "x: F b h s 4; cosine: F b s 2; sine: F b s 2"},
    {"scatter_elements", "x: T a b; indices: I a b; updates: T a b"},
    {"scatter_nd", "x: T a b; indices: I c 2; updates: T c"},
    {"signal_window", "size = _"},
    {"simulated_quantize", "x: F a b; dom_scale: F; clip_min: F; clip_max: F"},
    {"softmax", "x: F a b"},
    {"space_to_depth", "x: T n c 4 2; block = 2"},
    {"split", "x: T 4 b; axis = 0"},
    {"split", "x: T a 5; axis = 1; sizes = 2 3"},
    {"squeeze", "x: T a 1 b; axes = 1"},
    {"stft", "signal: F b 8 1; frame_step = 2; frame_length = 4"},
    {"string_concat", "a: string a; b: string a"},
    {"string_normalizer", "x: string a"},
    {"string_split", "x: string a"},
    {"tensor_scatter", "cache: F b h 4 d; update: F b h 2 d"},
    {"tfidf_vectorizer", "x: i64 a b"},
    {"tile", "x: T a b; repeats = 2 _"},
    {"top_k", "x: F a b; k = _"},
    {"transpose", "x: T a b c"},
    {"trilu", "x: T a b"},
    {"unsqueeze", "x: T a b; axes = 1"},
    {"where", "condition: B a b; a: T a b; b: T a b"},
    {"where", "condition: B; a: T a b; b: T b"},
};

constexpr std::string_view kLeftToOthers[] = {"constant", "fused", "if",          "image_decode",
                                              "loop",     "scan",  "sequence_map"};

}  // namespace

std::vector<std::string_view> hints_of(std::string_view op) {
  std::vector<std::string_view> hints;
  for (const Hint& hint : kHints) {
    if (hint.op == op) hints.push_back(hint.text);
  }
  return hints;
}

bool is_left_to_others(std::string_view op) {
  return std::find(std::begin(kLeftToOthers), std::end(kLeftToOthers), op) !=
         std::end(kLeftToOthers);
}

}  // namespace tenon
