#include "base/error.h"
#include "codegen/compile.h"
#include "codegen/select.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "nests/parse.h"
#include "nests/verify.h"
#include "unit/error_text.h"
#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace tenon::nests::parse_test {
namespace {

// Structural equality of two nests up to names of loops and buffers, including fields that the text
// implies.
class Same {
 public:
  Same(const LoopNest& a, const LoopNest& b) : a_(a), b_(b) {}

  bool run() {
    bool is =
        a_.name == b_.name && a_.extents == b_.extents && a_.buffers.size() == b_.buffers.size();
    for (std::size_t k = 0; is && k < a_.buffers.size(); ++k) {
      const NestBuffer &x = a_.buffers[k], &y = b_.buffers[k];
      is = x.name == y.name && x.dtype == y.dtype && x.dims == y.dims && x.storage == y.storage &&
           x.ahead == y.ahead;
    }
    return is && same(a_.body, b_.body);
  }

 private:
  bool same(const Block& x, const Block& y) {
    if (x.size() != y.size()) return false;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (!same(x[k], y[k])) return false;
    }
    return true;
  }

  bool same(const Statement& x, const Statement& y) {
    if (x.kind != y.kind || !same(x.limit, y.limit) || !same(x.value, y.value) ||
        !same(x.place, y.place))
      return false;
    if (x.kind == Statement::Kind::Loop) {
      loops_[x.id] = y.id;
      return x.extent == y.extent && x.loop == y.loop && x.is_independent == y.is_independent &&
             x.width == y.width && same(x.body, y.body);
    }
    if (x.id != y.id) return false;
    if (x.kind == Statement::Kind::Define) return a_.locals[x.id] == b_.locals[x.id];
    if (x.kind == Statement::Kind::Fold) return x.reduction == y.reduction;
    if (x.kind == Statement::Kind::Update && (x.reduction != y.reduction || x.bounds != y.bounds))
      return false;
    return x.view == y.view && same(x.indices, y.indices);
  }

  bool same(const std::vector<Scalar>& x, const std::vector<Scalar>& y) {
    if (x.size() != y.size()) return false;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (!same(x[k], y[k])) return false;
    }
    return true;
  }

  bool same(const Scalar& x, const Scalar& y) {
    if (!x.is_defined() || !y.is_defined()) return x.is_defined() == y.is_defined();
    if (x->kind != y->kind || x->dtype != y->dtype) return false;
    const bool is_number = x->kind == ScalarKind::Integer ? x->integer == y->integer
                           : x->kind == ScalarKind::Real
                               ? x->real == y->real || (x->real != x->real && y->real != y->real)
                               : true;
    if (!is_number) return false;
    if (x->kind == ScalarKind::Loop) return loops_.contains(x->id) && loops_.at(x->id) == y->id;
    if (x->kind == ScalarKind::Unary && x->unary != y->unary) return false;
    if (x->kind == ScalarKind::Binary && x->binary != y->binary) return false;
    if (x->id != y->id || x->bounds != y->bounds || x->view != y->view) return false;
    return same(x->args, y->args);
  }

  const LoopNest &a_, &b_;
  std::map<std::size_t, std::size_t> loops_;
};

void expect_parses_back(const std::string& network) {
  const Graph graph = driver::run_pipeline(zoo::build(network), driver::PipelineOptions());
  for (const char* cpu : {"x86-64-v3", "sapphire-rapids"}) {
    for (const TaskList::Kernel& kernel :
         codegen::select(graph, driver::cpu_options(cpu)).tasks.kernels) {
      const std::string text = to_string(kernel.nest);
      const LoopNest parsed = parse_nest(text);
      EXPECT_EQ(to_string(parsed), text) << network;
      EXPECT_TRUE(Same(kernel.nest, parsed).run()) << network << "\n" << text;
      EXPECT_EQ(faults_of(parsed), std::vector<std::string>()) << network << "\n" << text;
    }
  }
}

TEST(ParseNest, NestsOfNetworksRoundTrip) {
  for (const char* network :
       {"mlp", "resnet18?size=64", "squeezenet?size=64", "mobilenet_v2?size=64", "alexnet",
        "unet256?size=64,width=8", "bert_base?seq=32", "mlp?batch=N", "mlp?dtype=f16"}) {
    expect_parses_back(network);
  }
}

// The output of `--print=nests`.
TEST(ParseNest, ReadsPrintedModels) {
  const std::string printed =
      codegen::print_code(zoo::build("mlp"), driver::cpu_options(), codegen::CompileStage::Nests);
  std::string again;
  for (const LoopNest& nest : parse_nests(printed)) again += to_string(nest) + "\n";
  EXPECT_EQ(again, printed);
  EXPECT_NE(printed, "");
}

TEST(ParseNest, ReadsEveryFeature) {
  const std::string text =
      R"(kernel every.part (out y: f32[N, 8], x: bf16[N, 8] fetched 64 ahead, out n: i64[4], scratch s: f64[8]) given [N, floor((N - 1)/4) + 1] <N in [1, 64]> {
  for io in 0..dim(floor((N - 1)/4) + 1) parallel {
    for ii in 0..(4 min (dim(N) - (io * 4))) of 4 jam by 4 {
      t0 = -inf
      t1:i64 = 0
      for r in 0..8 carried {
        t0 = arg_max(t0, (x as [(N*8)] at [(((io * 4) + ii) + r)] else 0.5) at r)
      }
      t2:f64 = f64(t0)
      y[((io * 4) + ii), place of t0] = ((t0 < 1.0) ? -(t0) : exp(t0))
    }
  }
  for k in 0..4 {
    checked n[k] sum= (-1 // 2)
    s[k] = (1.5:f64 max s[k])
  }
}
)";
  std::string right = text;
  right.replace(right.find("(x as"), 1, "");
  right.replace(right.find("0.5) at r"), 4, "0.5");
  right.replace(right.find("[(N*8)]"), 7, "[8*N]");
  EXPECT_EQ(to_string(parse_nest(right)), right);
}

TEST(ParseNest, Errors) {
  const auto message = [](const std::string& text) {
    return error_text([&] { parse_nest(text, "nest"); });
  };
  EXPECT_NE(message("kernel k (x: f32[4]) {\n  for i in 1..4 {\n  }\n}").find("loops run from 0"),
            std::string::npos);
  EXPECT_NE(message("kernel k (out y: f32[4]) {\n  for i in 0..4 {\n    z[i] = 0.0\n  }\n}")
                .find("no buffer is called 'z'"),
            std::string::npos);
  EXPECT_NE(message("kernel k (out y: f32[4]) {\n  y[0] = t0\n}")
                .find("t0 is read before it has a value"),
            std::string::npos);
  EXPECT_NE(message("kernel k (out y: f32[4]) {\n  y[0] = (1.0 plus 2.0)\n}")
                .find("expected an operator"),
            std::string::npos);
  EXPECT_NE(message("kernel k (out y: f32[4]) {\n  y[0] = 1.0\n").find("line 3"),
            std::string::npos);
  EXPECT_NE(message("kernel k (out y: f32[4], y: f32[4]) {\n}").find("two buffers are called 'y'"),
            std::string::npos);
  EXPECT_NE(message("kernel k (out y: f32[N]) {\n  y[dim(N)] = 1.0\n}").find("is not given N"),
            std::string::npos);
  EXPECT_NE(message("kernel k () {\n}\nkernel l () {\n}").find("more than one nest"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::nests::parse_test
