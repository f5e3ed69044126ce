// Int8 products in register tiles, bit for bit against the reference, with every available
// instruction set.
#include "base/error.h"
#include "codegen/compile.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace tenon::integer_tiles_test {
namespace {

std::vector<std::string> processors() {
  std::vector<std::string> names = {"x86-64-v3"};
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    names.emplace_back("x86-64-v4");
  names.emplace_back("native");
  return names;
}

Tensor all(DType dtype, const Shape& shape, double value) {
  Tensor tensor(dtype, shape);
  for (std::int64_t k = 0; k < tensor.size(); ++k) tensor.set_real(k, value);
  return tensor;
}

// Runs the passes on the graph, then expects the reference and the compiled program to agree in
// every bit.
void expect_same_bits(const std::string& text, const std::vector<Datum>& given = {}) {
  const Graph graph = parse_graph(text, all_ops());
  const Graph optimised = driver::run_pipeline(graph, {});
  const std::vector<Datum> inputs = given.empty() ? models::random_inputs(graph, 3) : given;
  const std::vector<Datum> expected = reference::evaluate(optimised, inputs);
  for (const std::string& cpu : processors()) {
    const Program program = driver::compile_graph(graph, driver::parse_target(cpu));
    for (const int threads : {1, 2, 3}) {
      CompiledModel model(program, threads);
      const std::vector<Datum> outputs = model.run(inputs);
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        EXPECT_TRUE(identical(outputs[k].tensor(), expected[k].tensor()))
            << cpu << ", " << threads << " threads\n"
            << text;
      }
    }
  }
}

std::string convolution(const std::string& x, const std::string& w, const std::string& attrs,
                        const std::string& range) {
  return concat("graph (x: ", x, ") {\n  w = constant ", w, " uniform(seed = 5, low = ", range,
                ")\n  y = conv(x, w) {out_dtype = i32", attrs, "}\n  return y\n}");
}

TEST(IntegerTilesTest, ConvolutionShapes) {
  for (const char* range : {"-128, high = 127", "-63, high = 63"}) {
    for (const char* x : {"u8", "i8"}) {
      const std::string image = x;
      expect_same_bits(convolution(image + "[1, 32, 9, 15]", "i8[40, 32, 1, 1]", "", range));
      expect_same_bits(
          convolution(image + "[2, 8, 7, 7]", "i8[33, 8, 3, 3]", ", pads = [1, 1, 1, 1]", range));
      expect_same_bits(convolution(image + "[1, 3, 12, 12]", "i8[64, 3, 7, 7]",
                                   ", pads = [3, 3, 3, 3], strides = [2, 2], pad_value = 7",
                                   range));
      expect_same_bits(convolution(image + "[1, 5, 6, 5]", "i8[7, 5, 2, 3]",
                                   ", pads = [0, 1, 2, 0], dilations = [2, 1]", range));
      expect_same_bits(
          convolution(image + "[1, 8, 6, 6]", "i8[16, 4, 3, 3]", ", groups = 2", range));
      expect_same_bits(
          convolution(image + "[1, 12, 5, 5]", "i8[8, 6, 1, 1]", ", groups = 2", range));
      expect_same_bits(
          convolution(image + "[1, 64, 9, 9]", "i8[64, 64, 3, 3]", ", pads = [1, 1, 1, 1]", range));
      expect_same_bits(convolution(image + "[3, 6, 11]", "i8[12, 6, 3]", ", pads = [1, 1]", range));
    }
  }
}

TEST(IntegerTilesTest, LargestProductsDoNotSaturate) {
  for (const int weight : {127, -128, 64, 65, -64}) {
    expect_same_bits(
        concat("graph (x: u8[1, 16, 4, 4]) {\n  w = constant i8[32, 16, 3, 3] splat ", weight,
               "\n  y = conv(x, w) {out_dtype = i32, pads = [1, 1, 1, 1]}\n  return y\n}"),
        {all(DType::U8, {1, 16, 4, 4}, 255)});
  }
}

TEST(IntegerTilesTest, MatrixProducts) {
  const std::pair<int, int> sizes[] = {{1, 4},  {1, 640},  {7, 30},  {7, 129},
                                       {33, 4}, {33, 129}, {61, 30}, {61, 640}};
  for (const auto& [rows, inner] : sizes) {
    expect_same_bits(concat("graph (a: u8[", rows, ", ", inner, "]) {\n  b = constant i8[", inner,
                            ", 50] uniform(seed = 5, low = -128, high = 127)\n  y = matmul(a, b) "
                            "{out_dtype = i32}\n  return y\n}"));
  }
}

// A block of a residual network: int8 between its layers, with both kinds of quantized results.
TEST(IntegerTilesTest, QuantizedBlocks) {
  for (const char* type : {"u8", "i8"}) {
    const std::string zero = concat("constant ", type, "[] ", type[0] == 'u' ? "0" : "-128"),
                      middle = concat("constant ", type, "[] ", type[0] == 'u' ? "117" : "-5");
    expect_same_bits(concat(R"(graph (x: f32[1, 16, 10, 10]) {
  s = constant f32[] 0.02
  z = )",
                            middle, R"(
  n = )",
                            zero, R"(
  t = constant f32[32] uniform(seed = 8, low = 0.001, high = 0.003)
  w = constant i8[32, 16, 3, 3] uniform(seed = 5, low = -127, high = 127)
  v = constant i8[16, 32, 1, 1] uniform(seed = 6, low = -63, high = 63)
  f = constant f32[16] uniform(seed = 9, low = -1, high = 1)
  u = constant f32[] 0.01
  r = constant f32[] 0.05
  q = quantize_linear(x, s, z)
  d = dequantize_linear(q, s, z)
  p = max_pool(d) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}
  e = dequantize_linear(w, t) {axis = 0}
  c = conv(p, e) {pads = [1, 1, 1, 1]}
  a = relu(c)
  g = quantize_linear(a, r, n)
  h = dequantize_linear(g, r, n)
  i = dequantize_linear(v, u)
  j = conv(h, i, f)
  k = quantize_linear(j, r, z)
  l = dequantize_linear(k, r, z)
  m = add(l, d)
  o = relu(m)
  b = quantize_linear(o, r, n)
  y = dequantize_linear(b, r, n)
  return y, b
})"));
  }
}

// AMX tiles are selected for enough rows and for reductions of whole tiles.
TEST(IntegerTilesTest, AmxTiles) {
  const auto product = [](const char* rows, const char* inner) {
    return parse_graph(concat("graph (a: u8[", rows, ", ", inner, "]) {\n  b = constant i8[", inner,
                              ", 64] uniform(seed = 5, low = -128, high = 127)\n  y = matmul(a, b) "
                              "{out_dtype = i32}\n  return y\n}"),
                       all_ops());
  };
  const auto chosen = [](const Graph& graph, const char* cpu) {
    const codegen::Decision decision = codegen::decide(graph, driver::cpu_options(cpu)).back();
    return decision.candidates[decision.selection.versions.at(0).candidate].name;
  };
  EXPECT_EQ(chosen(product("40", "768"), "sapphire-rapids"), "dot tiles 32x32");
  EXPECT_EQ(chosen(product("40", "192"), "sapphire-rapids"), "dot tiles 14x32");  // short reduction
  EXPECT_EQ(chosen(product("2", "768"), "sapphire-rapids"), "dot tiles 14x32");
  EXPECT_EQ(chosen(product("40", "776"), "sapphire-rapids"), "dot tiles 14x32");
  EXPECT_EQ(chosen(product("40", "768"), "zen4"), "dot tiles 14x32");
  const std::string code = codegen::print_code(
      product("40", "768"), driver::cpu_options("sapphire-rapids"), codegen::CompileStage::Code);
  for (const char* instruction :
       {"ldtilecfg\t", "tileloadd\t", "tdpbusd\t", "tilestored\t", "tilerelease"}) {
    EXPECT_NE(code.find(instruction), std::string::npos) << instruction;
  }
  const Program program =
      codegen::compile(product("40", "768"), driver::cpu_options("sapphire-rapids")).program;
  EXPECT_EQ(program.target, "x86-64-v4+amx-int8");
}

// Heads of attention: a product whose result is split and transposed in the same kernel, and so is
// one stage of several.
TEST(IntegerTilesTest, ContractionsAsNestStages) {
  for (const char* width : {"64", "62"}) {
    expect_same_bits(concat(R"(graph (x: u8[1, 40, )", width, R"(]) {
  w = constant i8[)",
                            width, R"(, 96] uniform(seed = 5, low = -127, high = 127)
  b = constant i32[96] uniform(seed = 6, low = -9000, high = 9000)
  s = constant f32[] 0.001
  p = matmul(x, w) {out_dtype = i32}
  a = add(p, b)
  f = cast(a) {to = f32}
  m = mul(f, s)
  r = reshape(m) {shape = [1, 40, 3, 32]}
  y = transpose(r) {perm = [0, 2, 1, 3]}
  return y
})"));
  }
}

// Quantization and dequantization in one kernel: halves, out-of-range values, NaN, zeros of both
// signs.
TEST(IntegerTilesTest, QuantizeDequantizeRoundTrip) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> numbers = {0.0F, -0.0F, -0.3F, infinity, -infinity, nan,   -nan,
                                3e9F, -3e9F, 5e9F,  -5e9F,    1e38F,     -1e38F};
  for (int k = -300; k <= 300; ++k) numbers.push_back(static_cast<float>(k) * 0.5F);
  Tensor x(DType::F32, {static_cast<std::int64_t>(numbers.size())});
  for (std::size_t k = 0; k < numbers.size(); ++k)
    x.set_real(static_cast<std::int64_t>(k), numbers[k]);
  for (const char* type : {"u8", "i8", "i16"}) {
    for (const int zero : {0, 1, 124, type[0] == 'u' ? 255 : -7}) {
      expect_same_bits(concat("graph (x: f32[", numbers.size(),
                              "]) {\n  s = constant f32[] 1\n  z = constant ", type, "[] ", zero,
                              "\n  q = quantize_linear(x, s, z)\n  d = dequantize_linear(q, s, "
                              "z)\n  y = neg(d)\n  return q, y\n}"),
                       {x});
    }
  }
}

TEST(IntegerTilesTest, DynamicZeroPoints) {
  expect_same_bits(R"(graph (a: u8[9, 20], z: u8[]) {
  b = constant u8[20, 40] uniform(seed = 5, low = 1, high = 255)
  n = constant u8[] 128
  ai = cast(a) {to = i32}
  zi = cast(z) {to = i32}
  bi = cast(b) {to = i32}
  ni = cast(n) {to = i32}
  ac = sub(ai, zi)
  bc = sub(bi, ni)
  y = matmul(ac, bc) {out_dtype = i32}
  return y
})");
}

TEST(IntegerTilesTest, SelectedByTheCostModel) {
  const Graph graph = parse_graph(R"(graph (x: u8[1, 14, 14, 32]@NHWC) {
  w = constant i8[64, 32, 3, 3] uniform(seed = 5, low = -9, high = 9)
  y = conv(x, w) {out_dtype = i32, pads = [1, 1, 1, 1]}
  return y
})",
                                  all_ops());
  for (const std::string& cpu : processors()) {
    driver::CompileRequest request;
    request.target = driver::parse_target(cpu);
    request.is_untuned = true;
    const std::vector<codegen::Decision> decisions = driver::decide_kernels(graph, request);
    const bool has_dots = std::ranges::any_of(decisions, [](const codegen::Decision& decision) {
      return decision.candidates[decision.selection.versions.front().candidate].name.starts_with(
          "dot tiles");
    });
    EXPECT_TRUE(has_dots) << cpu;
  }
}

}  // namespace
}  // namespace tenon::integer_tiles_test
