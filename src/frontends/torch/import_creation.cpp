#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

#include <cmath>

namespace tenon::frontends::torch {
namespace {

void fill_result(NodeImport& n, Var value) { n.result(expand_to(value, n.result_dims())); }

void import_zeros(NodeImport& n) { fill_result(n, n.number(0, n.result_dtype())); }
void import_ones(NodeImport& n) { fill_result(n, n.number(1, n.result_dtype())); }
void import_full(NodeImport& n) { fill_result(n, n.operand("fill_value", n.result_dtype())); }
void import_scalar(NodeImport& n) { n.result(n.operand("s", n.result_dtype())); }

// start + step * position; the program states the number of elements.
void import_arange(NodeImport& n) {
  const DType dtype = n.result_dtype();
  const DType computed = is_float(dtype) ? dtype : DType::I64;
  const Var start = n.has("start") ? n.operand("start", computed) : n.number(0, computed);
  const Var step = n.has("step") ? n.operand("step", computed) : n.number(1, computed);
  const Var ones = expand_to(n.number(1, DType::I64), n.result_dims());
  const Var positions = n.call("cumsum", {ones}, {{"axis", Dim(0)}, {"exclusive", true}});
  n.result(n.call("add", {start, n.call("mul", {cast_to(positions, computed), step})}));
}

void import_linspace(NodeImport& n) {
  const std::int64_t steps = n.integer("steps");
  const double start = n.real("start"), end = n.real("end");
  std::vector<double> numbers;
  constexpr std::int64_t kMaxSteps = 1 << 20;
  if (steps > kMaxSteps) n.unsupported("its result is too long");
  for (std::int64_t k = 0; k < steps; ++k) {
    const double share = steps > 1 ? static_cast<double>(k) / static_cast<double>(steps - 1) : 0;
    numbers.push_back(start + (end - start) * share);
  }
  n.result(n.build.constant(Tensor::of<double>(n.result_dtype(), {steps}, numbers)));
}

void import_eye(NodeImport& n) {
  const Var zeros = expand_to(n.number(0, n.result_dtype()), n.result_dims());
  n.result(n.call("eye_like", {zeros}));
}

// Random numbers follow from the node: each node has its own seed.
void import_random(NodeImport& n) {
  static std::int64_t constexpr kFirstSeed = 0x7e2011;
  const bool is_normal = n.op.starts_with("randn");
  const auto seed = kFirstSeed + static_cast<std::int64_t>(n.build.graph().node_id_bound());
  n.result(n.call(is_normal ? "random_normal" : "random_uniform", {},
                  {{"shape", n.result_dims()}, {"dtype", n.result_dtype()}, {"seed", Dim(seed)}}));
}

constexpr Handler creation_table[] = {
    {"zeros", import_zeros},
    {"zeros_like", import_zeros},
    {"new_zeros", import_zeros},
    {"empty", import_zeros},
    {"empty_like", import_zeros},
    {"new_empty", import_zeros},
    {"empty_strided", import_zeros},
    {"ones", import_ones},
    {"ones_like", import_ones},
    {"new_ones", import_ones},
    {"full", import_full},
    {"full_like", import_full},
    {"new_full", import_full},
    {"scalar_tensor", import_scalar},
    {"arange", import_arange},
    {"linspace", import_linspace},
    {"eye", import_eye},
    {"rand", import_random},
    {"rand_like", import_random},
    {"randn", import_random},
    {"randn_like", import_random},
};

}  // namespace

std::span<const Handler> creation_handlers() { return creation_table; }

}  // namespace tenon::frontends::torch
