#include "fake_ops.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <sstream>

namespace tenon::text_test {
namespace {

using fake::table;

std::string message_of(std::string_view text) {
  return error_text([&] { parse_graph(text, table(), "model.tenon"); });
}

// The text is canonical: it prints as it is, and parsing it reproduces the graph.
void expect_canonical(const std::string& text) {
  const Graph graph = parse_graph(text, table());
  EXPECT_EQ(print(graph), text);
  EXPECT_TRUE(problems_of(graph).empty());
  EXPECT_TRUE(identical(parse_graph(print(graph), table()), graph));
  std::ostringstream stream;
  print(graph, stream);
  EXPECT_EQ(stream.str(), text);
}

TEST(Text, RoundTripsAGraph) {
  expect_canonical(
      R"(graph resnet <N in [1, 64]> (x: f32[N, 3, S], w: f32[64, 3, 7, 7]@OIHW, "with space": ?) {
  metadata "producer" = "a \"tool\"\n"
  metadata "version" = "1"
  a = constant f32[2] [1, 2]
  b = constant f32[2] splat 0.5
  c = add(a, b)
  p, q = split(x) {axis = 1}
  y, _, n = pool(x) {kernel = [3, 2*N + 1], mode = average} @ "source node name"
  z = pool(x, bias = w)
  r = reshape(x, shape = c)
  "return" = pool("with space")
  return y, z, "return", y
}
)");
}

TEST(Text, RoundTripsStates) {
  expect_canonical(
      R"(graph (x: f32[2], h: f32[2], c: f32[2], past: f32[P, 2], w: f32[2], state: f32[2]) {
  state h to h1 = f32[2] [1, 2]
  state c to y double_buffered = zeros
  state past to past
  state state to y at 4
  state w to y
  h1 = add(x, h)
  y = add(h1, c)
  return h1, y, past, y, y
}
)");
}

TEST(Text, RefusesStatesThatDoNotFit) {
  EXPECT_EQ(message_of("graph (x: f32[2], h: f32[2]) {\n  state h to y\n  return x\n}\n"),
            "no output 'y' is left for the state\n  at        model.tenon, line 2, column 3");
  EXPECT_EQ(message_of("graph (x: f32[2]) {\n  y = add(x, x)\n  state y to y\n  return y\n}\n"),
            "'y' is no input\n  at        model.tenon, line 3, column 9");
  const Graph graph = parse_graph(
      "graph (x: f32[3], h: f32[2], w: f32[2]) {\n  state h to x\n"
      "  state w to w = f32[3] [1, 2, 3]\n  return x, w\n}\n",
      table());
  EXPECT_EQ(problems_of(graph),
            (std::vector<std::string>{"state 'h' is f32[2] and its next value f32[3]",
                                      "state 'w' is f32[2] and its initial value f32[3]"}));
}

TEST(Text, RoundTripsEveryAttribute) {
  expect_canonical(R"(graph (x: f32[N]) {
  a = pool(x) {kernel = [], flag = true, axis = -1, factor = -0.0, label = "a, b}", to = bf16, factors = [0.5, 1e-20, inf, 3.0], labels = ["x", ""], fill = i64[2] [1, -2], like = seq(f32[N, floor(N/2)])}
  b = pool(x) {flag = false, axis = 2*N, factors = [], labels = [], like = ?}
  return
}
)");
}

TEST(Text, RoundTripsBodies) {
  expect_canonical(R"(graph <N in [1, 8]> (c: bool[], x: f32[2]) {
  r = if(c, c, x) @ "branch" then = graph yes (c: bool[], a: f32[2]) {
    metadata "in" = "body"
    y = add(a, a)
    return y
  } else = graph (c: bool[], a: f32[2]) {
    s = if(c, a) then = graph (a: f32[N]) {
      return a
    } else = graph () {
      return
    }
    return s
  }
  each(x)
  each(xs = x, xs = r) body = graph () {
    return
  } body = graph () {
    return
  }
  each()
  return r
}
)");
}

TEST(Text, RoundTripsStatedTypes) {
  expect_canonical(R"(graph <N in [1, 9]> (x: f32[2], s: i64[2]) {
  y: f32[N, 2] = reshape(x, shape = s)
  z = pool(y)
  return z
}
)");
  EXPECT_EQ(message_of("graph (x: f32[2]) { y: f32[3] = pool(x) return y }"),
            "'y' has another type\n  at        model.tenon, line 1, column 21\n"
            "  expected  f32[2]\n  got       f32[3]");
}

TEST(Text, ReadsNonCanonicalText) {
  const Graph graph = parse_graph(R"(# a comment
    graph<N,M in[2,3]>(x:f32[ N ],s:i64[1]) { # another
      y = reshape(shape = s, # in between
                  x = x)
      p = pool(x){axis=N # late
                 , factor = 1}
      c = constant f32[] [3.0]
      metadata "late" = "yes"
      return y})",
                                  table());
  EXPECT_EQ(print(graph), R"(graph (x: f32[N], s: i64[1]) {
  metadata "late" = "yes"
  y = reshape(x, shape = s)
  p = pool(x) {axis = N, factor = 1.0}
  c = constant f32[] 3
  return y
}
)");
}

TEST(Text, PrintsNames) {
  EXPECT_EQ(print_name("a/b.c-1$@_"), "a/b.c-1$@_");
  EXPECT_EQ(print_name("12"), "12");
  for (const char* name : {"", "_", "@", "return", "metadata", "a b", "x:0", "é", "a\"b"}) {
    EXPECT_EQ(print_name(name).front(), '"') << name;
  }
}

TEST(Text, ErrorPositions) {
  EXPECT_EQ(message_of("graph (x: f32[2]) {\n  y = add(x, x\n  return y\n}"),
            "expected ')' or ',' after an operand\n  at        model.tenon, line 3, column 3\n"
            "  got       \"return\"");
  EXPECT_EQ(message_of("graph (x: f32[2]) { y = ad(x, x) return y }"),
            "there is no op 'ad'\n  at        model.tenon, line 1, column 25\n"
            "  hint      did you mean 'add'?");
  EXPECT_EQ(message_of("graph (x: f32[2]) { y = split(x) {axes = 1} return y }"),
            "split has no attribute 'axes'\n  at        model.tenon, line 1, column 35\n"
            "  hint      did you mean 'axis'?");
  EXPECT_EQ(message_of("graph (x: f32[2]) { y = pool(x) {mode = min} return y }"),
            "pool: 'mode' cannot be 'min'\n  at        model.tenon, line 1, column 41\n"
            "  hint      one of max, average");
  EXPECT_EQ(message_of("graph (input: f32[2]) { y = pool(inputs) return y }"),
            "there is no value 'inputs' here\n  at        model.tenon, line 1, column 34\n"
            "  hint      did you mean 'input'?");
  EXPECT_EQ(message_of("graph (x: f32[2], z: f32[3]) {\n  y = add(x, z)\n  return y }"),
            "add: types differ\n  at        model.tenon, line 2, column 3, node 'y' (add)\n"
            "  got       a: f32[2], b: f32[3]");
  EXPECT_EQ(
      message_of("graph (x: f32[2]) { x = pool(x) return x }"),
      "two values are called 'x'\n  at        model.tenon, line 1, column 21, node 'x' (pool)");
  EXPECT_EQ(message_of("graph () { c = constant f32[3] [1, 2] return c }"),
            "the number of elements does not match the type\n"
            "  at        model.tenon, line 1, column 32\n  expected  3\n  got       2");
  EXPECT_EQ(message_of("graph (x: f32[2]) {"),
            "expected a statement or 'return'\n  at        model.tenon, line 1, column 20\n"
            "  got       the end of the text");
  EXPECT_EQ(message_of("graph <N in [4, 3]> () { return }"),
            "the range of 'N' holds no extent\n  at        model.tenon, line 1, column 8");
}

// One text with an unknown value, op, attribute and output, and operands that do not fit.
TEST(Text, ReportsAllErrors) {
  std::vector<std::string> summaries;
  try {
    parse_graph(
        "graph (x: f32[2], z: f32[3]) {\n  a = pool(ghost)\n  b = frob(a) {k = [1]} @\"n\"\n"
        "  c = split(b) {axes = 1}\n  d = add(x, z)\n  e = pool(d)\n  return e, nothing\n}",
        table(), "model.tenon");
  } catch (const Error& error) {
    summaries.push_back(error.summary());
    for (const Error& further : error.further()) summaries.push_back(further.summary());
  }
  EXPECT_EQ(summaries,
            (std::vector<std::string>{"there is no value 'ghost' here", "there is no op 'frob'",
                                      "split has no attribute 'axes'", "add: types differ",
                                      "there is no value 'nothing' here"}));
}

// Hostile text: each input ends in an Error, quickly, without allocations for missing data.
TEST(Text, SurvivesHostileText) {
  const std::string many(100'000, '(');
  std::string nested, bodies;
  for (int i = 0; i < 2000; ++i) nested += "seq(";
  for (int i = 0; i < 2000; ++i) bodies += "graph (c: bool[]) { r = if(c) then = ";
  for (const std::string& text :
       {std::string(),
        std::string("graph"),
        std::string("graph ("),
        "graph (x: f32[" + many,
        "graph (x: " + nested,
        bodies,
        std::string("graph (x: f32[\"a]) { return }"),
        std::string("graph () { c = constant f32[1099511627776] [1] return c }"),
        std::string("graph () { c = constant f32[1099511627776] base64 \"AAAA\" return c }"),
        std::string("graph () { c = constant f32[99999999999, 99999999999] splat 1 return c }"),
        std::string("graph () { c = constant string[1] base64 \"AAAA\" return c }"),
        std::string("graph () { c = constant bool[3] base64 \"AAAC\" return c }"),
        std::string("graph () { c = constant f32[N] [1] return c }"),
        std::string("graph () { c = constant f32[-1] [] return c }"),
        std::string("graph () { c = constant u8[] 256 return c }"),
        std::string("graph () { c = constant f16[] 70000 return c }"),
        std::string("graph () { c = constant f8e4m3fn[] inf return c }"),
        std::string("graph () { c = constant i8[] 0x100 return c }"),
        std::string("graph () { c = constant f32[] 1e99 return c }"),
        std::string("graph () { return }\0graph", 24),
        std::string("graph () { return } x")}) {
    EXPECT_THROW(parse_graph(text, table()), Error) << text.substr(0, 100);
  }
}

TEST(Text, PrintsHugeConstantsWithoutMaterializing) {
  expect_canonical(R"(graph () {
  a = constant f32[1099511627776] splat -0
  b = constant f32[1048576, 1024] normal(seed = 18446744073709551615, mean = 0.0, deviation = 0.1)
  c = constant i8[1048576, 1024] uniform(seed = 7, low = -3.0, high = 3.0)
  return
}
)");
}

void expect_lossless(const Constant& constant) {
  const std::string text = print(constant);
  EXPECT_TRUE(identical(parse_constant(text), constant)) << text;
}

TEST(ConstantText, NarrowTypesRoundTrip) {
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.storage_bytes > 2 || row.dtype == DType::String) continue;
    for (int first = 0; first < (row.storage_bytes == 1 ? 1 << row.bits : 1 << 16); first += 16) {
      for (std::int64_t count : {1, 16}) {
        Tensor tensor(row.dtype, {count});
        const std::span<std::byte> bytes = tensor.mutable_bytes();
        for (int i = 0; i < count; ++i) {
          int code = first + i;
          if (row.storage_bytes == 1 && row.bits < 8) {
            code &= (1 << row.bits) - 1;
            const bool is_negative = row.arithmetic == Arithmetic::Signed && code >> (row.bits - 1);
            if (is_negative) code -= 1 << row.bits;
          }
          if (row.dtype == DType::Bool) code &= 1;
          std::memcpy(&bytes[static_cast<std::size_t>(i) * row.storage_bytes], &code,
                      row.storage_bytes);
        }
        expect_lossless(tensor);
      }
    }
  }
}

TEST(ConstantText, WideTypesRoundTrip) {
  std::uint64_t state = 1;
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.storage_bytes < 4 || row.dtype == DType::String) continue;
    for (int round = 0; round < 200; ++round) {
      Tensor tensor(row.dtype, {round % 70});  // past the length from which base64 is printed
      for (std::byte& byte : tensor.mutable_bytes()) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(state >> 56);
      }
      expect_lossless(tensor);
    }
  }
}

std::string text_of(const Constant& constant) { return print(constant); }

TEST(ConstantText, IsReadable) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      text_of(Tensor::of<double>(DType::F32, {2, 3}, {1, -0.0, 0.1f, 1e20f, infinity, -infinity})),
      "f32[2, 3] [1, -0, 0.1, 1e+20, inf, -inf]");
  EXPECT_EQ(text_of(Tensor::of<double>(DType::F16, {3}, {0.1, 65504, 1.0 / 3})),
            "f16[3] [0.1, 65504, 0.3333]");
  EXPECT_EQ(text_of(Tensor::of<std::int64_t>(DType::Bool, {2}, {1, 0})), "bool[2] [true, false]");
  EXPECT_EQ(text_of(Tensor::scalar(DType::I64, -3)), "i64[] -3");
  EXPECT_EQ(text_of(Tensor::of_strings({2}, {"a", "b\n"})), "string[2] [\"a\", \"b\\n\"]");
  Tensor complex(DType::C64, {1});
  complex.set_complex(0, {1, -2.5});
  EXPECT_EQ(text_of(complex), "c64[1] [(1, -2.5)]");
  EXPECT_EQ(text_of(parse_constant("f32[2] [nan, 0x7fc00001]")), "f32[2] [nan, 0x7fc00001]");
  EXPECT_EQ(text_of(Tensor(DType::U8, {65})).substr(0, 20), "u8[65] base64 \"AAAAA");
  expect_lossless(Tensor::of_strings({}, {std::string("\0\xff\"", 3)}));
}

// Printing and parsing are linear: many nodes take seconds. The times are informative only.
TEST(Text, ScalesToManyNodes) {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  const auto lap = [&](const char* what) {
    const auto now = Clock::now();
    std::printf("  %-6s %.2f s\n", what, std::chrono::duration<double>(now - last).count());
    last = now;
  };
  constexpr std::size_t kNodes = 100'000;
  Graph graph;
  const TensorType type{DType::F32, {Dim::symbol("N"), 256}, {}};
  ValueId x = graph.add_input("x", type);
  const ValueId shared = x;
  for (std::size_t i = 0; i < kNodes; ++i) {
    auto made = i % 4 ? fake::node("add", {x, shared}) : fake::node("pool", {x});
    if (i % 4 == 0) made.attrs.set("kernel", Dims{3, 3});
    x = graph.node(graph.add_node(std::move(made))).results[0];
  }
  graph.add_output(x);
  lap("build");
  const std::string text = print(graph);
  lap("print");
  const Graph parsed = parse_graph(text, table());
  lap("parse");
  EXPECT_TRUE(problems_of(parsed).empty());
  lap("verify");
  EXPECT_TRUE(identical(parsed, graph));
  lap("equal");
  graph.set_outputs({shared});
  EXPECT_EQ(graph.erase_dead(), kNodes);
  lap("erase");
}

}  // namespace
}  // namespace tenon::text_test
