// Complex tensors are real ones with a last axis of two: the real and the imaginary parts.
#include "frontends/torch/import_node.h"
#include "ops/definition/var_ops.h"

namespace tenon::frontends::torch {
namespace {

void import_same(NodeImport& n) { n.result(n.first()); }

Var joined(NodeImport& n, Var real, Var imaginary) {
  Dims dims = n.dims(real);
  dims.emplace_back(1);
  return n.call("concat", {reshape_to(real, dims), reshape_to(imaginary, dims)},
                {{"axis", Dim(-1)}});
}

Var part(NodeImport& n, Var x, std::int64_t k) {
  Dims dims = n.dims(x);
  dims.pop_back();
  return reshape_to(
      n.call("slice", {x}, {{"starts", Dims{k}}, {"ends", Dims{k + 1}}, {"axes", Dims{-1}}}), dims);
}

void import_polar(NodeImport& n) {
  const Var radius = n.tensor("abs"), angle = n.tensor("angle");
  n.result(joined(n, radius * n.call("cos", {angle}), radius * n.call("sin", {angle})));
}
void import_complex(NodeImport& n) { n.result(joined(n, n.tensor("real"), n.tensor("imag"))); }
void import_real(NodeImport& n) {
  const Var x = n.first();
  n.result(n.is_complex("self") ? part(n, x, n.op == "imag" ? 1 : 0) : x);
}
void import_conjugate(NodeImport& n) {
  const Var x = n.first();
  if (!n.is_complex("self")) return n.result(x);
  n.result(joined(n, part(n, x, 0), -part(n, x, 1)));
}

constexpr Handler complex_table[] = {
    {"view_as_complex", import_same},
    {"view_as_real", import_same},
    {"polar", import_polar},
    {"complex", import_complex},
    {"real", import_real},
    {"imag", import_real},
    {"conj", import_conjugate},
    {"_conj", import_conjugate},
    {"conj_physical", import_conjugate},
    {"resolve_conj", import_same},
};

}  // namespace

std::span<const Handler> complex_handlers() { return complex_table; }

}  // namespace tenon::frontends::torch
