// Trains a small classifier from C++, as `tenon train` does.

#include "tenon/builder.h"
#include "train/options.h"
#include "train/trainer.h"

#include <iostream>

int main() {
  tenon::Builder b("classifier");
  tenon::Var x = b.input("x", "f32[N, 16]");
  x = b.call("relu", {b.call("matmul", {x, b.normal("w1", "f32[16, 64]", 1, 0.3)})});
  b.output(b.call("matmul", {x, b.normal("w2", "f32[64, 4]", 2, 0.2)}), "logits");

  tenon::train::TrainerOptions options;  // or options.data = "@samples.npz"
  tenon::train::set_optimizer(options.train, "adamw,lr=0.01,weight_decay=0.01");
  options.synthetic_samples = 4096;
  options.epochs = 5;
  tenon::train::Trainer trainer(b.take(), options);
  trainer.on_validation = [](const tenon::train::CurvePoint& at) {
    std::cout << "step " << at.step << ": accuracy " << at.accuracy << "\n";
  };
  const tenon::train::TrainResult result =
      trainer.run();  // result.model contains the trained parameters
  return result.validation->accuracy > 0.97 ? 0 : 1;
}
