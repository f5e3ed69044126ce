// Builds a small network with the public builder and prints it in Tenon's text form.

#include "ir/text.h"

#include <tenon/builder.h>

#include <iostream>

int main() {
  tenon::Builder b("mlp");
  tenon::Var x = b.input("x", "f32[N, 784]");
  for (int layer = 1; layer <= 2; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    const tenon::Var weights =
        b.normal(name + ".weight", layer == 1 ? "f32[784, 32]" : "f32[32, 10]",
                 static_cast<std::uint64_t>(layer), 0.05);
    x = b.call("matmul", {x, weights}, {}, name);
    if (layer == 1) x = b.call("relu", {x});
  }
  b.output(b.call("softmax", {x}, {{"axis", -1}}), "y");
  std::cout << tenon::print(b.take());
}
