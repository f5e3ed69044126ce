#pragma once

#include "ir/tensor.h"
#include "testing/random.h"

namespace tenon {

// An encoder of one layer with two heads, over tokens.
inline constexpr const char* kOrderTransformer = R"(graph order (tokens: i64[N, 12]) {
  token.table = constant f32[12, 32] normal(seed = 1, mean = 0.0, deviation = 0.3)
  place.table = constant f32[12, 32] normal(seed = 2, mean = 0.0, deviation = 0.3)
  norm1.scale = constant f32[32] splat 1.0
  norm1.bias = constant f32[32] splat 0.0
  query.w = constant f32[32, 32] normal(seed = 3, mean = 0.0, deviation = 0.18)
  key.w = constant f32[32, 32] normal(seed = 4, mean = 0.0, deviation = 0.18)
  value.w = constant f32[32, 32] normal(seed = 5, mean = 0.0, deviation = 0.18)
  out.w = constant f32[32, 32] normal(seed = 6, mean = 0.0, deviation = 0.18)
  norm2.scale = constant f32[32] splat 1.0
  norm2.bias = constant f32[32] splat 0.0
  fc1.w = constant f32[32, 64] normal(seed = 7, mean = 0.0, deviation = 0.18)
  fc1.b = constant f32[64] splat 0.0
  fc2.w = constant f32[64, 32] normal(seed = 8, mean = 0.0, deviation = 0.12)
  fc2.b = constant f32[32] splat 0.0
  head.w = constant f32[32, 2] normal(seed = 9, mean = 0.0, deviation = 0.18)
  root = constant f32[] 0.25
  e = gather(token.table, tokens) {axis = 0}
  x = add(e, place.table)
  a = layer_norm(x, norm1.scale, norm1.bias)
  q = matmul(a, query.w)
  k = matmul(a, key.w)
  v = matmul(a, value.w)
  q2 = reshape(q) {shape = [N, 12, 2, 16]}
  k2 = reshape(k) {shape = [N, 12, 2, 16]}
  v2 = reshape(v) {shape = [N, 12, 2, 16]}
  q3 = transpose(q2) {perm = [0, 2, 1, 3]}
  k3 = transpose(k2) {perm = [0, 2, 3, 1]}
  v3 = transpose(v2) {perm = [0, 2, 1, 3]}
  s = matmul(q3, k3)
  s2 = mul(s, root)
  p = softmax(s2)
  o = matmul(p, v3)
  o2 = transpose(o) {perm = [0, 2, 1, 3]}
  o3 = reshape(o2) {shape = [N, 12, 32]}
  o4 = matmul(o3, out.w)
  h = add(x, o4)
  b = layer_norm(h, norm2.scale, norm2.bias)
  m = matmul(b, fc1.w)
  m2 = add(m, fc1.b)
  m3 = gelu(m2)
  m4 = matmul(m3, fc2.w)
  m5 = add(m4, fc2.b)
  y = add(h, m5)
  pooled = reduce_mean(y) {axes = [1], keep_axes = false}
  logits = matmul(pooled, head.w)
  return logits
}
)";

/// Training data: which of two marked tokens comes first?
struct OrderedTokens {
  Tensor tokens, target;

  OrderedTokens(std::int64_t count, std::uint64_t seed) {
    constexpr std::int64_t length = 12;
    tokens = Tensor(DType::I64, {count, length});
    target = Tensor(DType::I64, {count});
    testing::Random random(seed);
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t i = 0; i < length; ++i)
        tokens.set_integer(k * length + i, random.between(2, 11));
      const std::int64_t first = random.between(0, length - 1);
      const std::int64_t second = (first + random.between(1, length - 1)) % length;
      tokens.set_integer(k * length + first, 0);
      tokens.set_integer(k * length + second, 1);
      target.set_integer(k, first < second);
    }
  }
};

}  // namespace tenon
