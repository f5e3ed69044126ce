#include "base/error.h"
#include "layers.h"

#include <cmath>

namespace tenon::testing {
namespace {

using Integers = Attr::Integers;

std::int64_t width(Chain& chain, Var x) { return chain.shape(x).back(); }

Var linear(Chain& chain, Var x, std::int64_t size) {
  Var y = chain.call("matmul", {x, chain.weight({width(chain, x), size})});
  return chain.random().chance(50) ? y + chain.weight({size}) : y;
}

// SwiGLU with weights that are joined or apart.
Var swiglu(Chain& chain, Var x) {
  const std::int64_t hidden = chain.channels() * (chain.random().chance(20) ? 40 : 2);
  Var gate, up;
  if (chain.random().chance(60)) {
    const std::vector<Var> parts =
        chain.builder().call_all("split", {linear(chain, x, 2 * hidden)},
                                 {{"axis", -1}, {"sizes", Integers{hidden, hidden}}}, {"", ""});
    gate = parts[0];
    up = parts[1];
  } else {
    gate = linear(chain, x, hidden);
    up = linear(chain, x, hidden);
  }
  const Var y = linear(chain, up * (gate * chain.call("sigmoid", {gate})), width(chain, x));
  return chain.random().chance(70) ? y + x : y;
}

// [B, S, h * d] -> [B, h, S, d].
Var heads(Chain& chain, Var x, std::int64_t count) {
  const Var split =
      chain.call("reshape", {x}, {{"shape", Integers{0, 0, count, width(chain, x) / count}}});
  return chain.call("transpose", {split}, {{"perm", Integers{0, 2, 1, 3}}});
}

Var attention(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const std::int64_t count = random.between(1, 4), size = random.between(1, 4) * 8;
  const Var q = heads(chain, linear(chain, x, count * size), count),
            k = heads(chain, linear(chain, x, count * size), count),
            v = heads(chain, linear(chain, x, count * size), count);
  Var y;
  if (random.chance(40)) {
    y = chain.call("attention", {q, k, v}, {{"causal", random.chance(50)}});
  } else {
    const Var turned = chain.call("transpose", {k}, {{"perm", Integers{0, 1, 3, 2}}});
    const Var scores =
        chain.call("matmul", {q, turned}) * (1 / std::sqrt(static_cast<double>(size)));
    y = chain.call("matmul", {chain.call("softmax", {scores}), v});
  }
  y = chain.call("transpose", {y}, {{"perm", Integers{0, 2, 1, 3}}});
  y = chain.call("reshape", {y}, {{"shape", Integers{0, 0, count * size}}});
  y = linear(chain, y, width(chain, x));
  return random.chance(70) ? y + x : y;
}

Var sequence_norm(Chain& chain, Var x) {
  const Var scale = chain.weight({width(chain, x)});
  if (chain.random().chance(40)) return chain.call("rms_norm", {x, scale});
  return chain.call("layer_norm", {x, scale, chain.weight({width(chain, x)})});
}

Var sequence_movement(Chain& chain, Var x) {
  testing::Random& random = chain.random();
  const std::int64_t axis = random.between(0, 2);
  switch (random.below(4)) {
    case 0:
      return chain.call("concat", {x, chain.earlier_like(x)}, {{"axis", axis}});
    case 1:
      return chain.call("transpose", {x}, {{"perm", Integers{0, 2, 1}}});
    case 2:
      return chain.call("slice", {x},
                        {{"starts", Integers{random.between(-3, 3)}},
                         {"ends", Integers{1000}},
                         {"axes", Integers{axis}}});
    default: {
      const std::int64_t size = width(chain, x), first = random.between(0, size);
      const std::vector<Var> parts = chain.builder().call_all(
          "split", {x}, {{"axis", -1}, {"sizes", Integers{first, size - first}}}, {"", ""});
      return chain.call("concat", {parts[1], parts[0]}, {{"axis", -1}});
    }
  }
}

Var sequence_epilogue(Chain& chain, Var x) {
  if (chain.random().chance(40)) return chain.activation(x);
  if (chain.random().chance(50)) return x + chain.earlier_like(x);
  return chain.call("softmax", {x}, {{"axis", chain.random().between(0, 2)}});
}

}  // namespace

Var sequence_layer(Chain& chain, Var x) {
  const Integers shape = chain.shape(x);
  const std::size_t kind = chain.random().below(100);
  if (shape.back() < 0) {  // The width became a symbol.
    return kind < 50 ? chain.call("transpose", {x}, {{"perm", Integers{0, 2, 1}}})
                     : sequence_epilogue(chain, x);
  }
  if (kind < 25) return linear(chain, x, chain.channels());
  if (kind < 40) return swiglu(chain, x);
  if (kind < 58) return attention(chain, x);
  if (kind < 73) return sequence_norm(chain, x);
  if (kind < 87) return sequence_epilogue(chain, x);
  return sequence_movement(chain, x);
}

}  // namespace tenon::testing
