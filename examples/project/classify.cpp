// classify MODEL PROGRAM.tnn: compiles a model, runs and saves it, and trains a step of it.
#include <tenon/tenon.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const tenon::Model model(argv[1]);
    const tenon::Program program = model.compile(R"({"untuned": true})");
    tenon::save(program, argv[2]);

    std::vector<float> x(784), y(10);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7) - 3;
    tenon::Context context = program.context({.threads = 1});
    context.run({tenon::Tensor(std::span(x), {1, 784})}, {tenon::Tensor(std::span(y), {1, 10})});
    for (const float value : y) std::printf("%.6g\n", value);

    tenon::Trainer trainer(model, R"({"batch": 1, "optimizer": "sgd,lr=0.01"})");
    std::vector<std::int64_t> target = {3};
    const std::vector<tenon::Tensor> batch = {tenon::Tensor(std::span(x), {1, 784}),
                                              tenon::Tensor(std::span(target), {1})};
    const float before = trainer.step(batch, 2).front().as<float>()[0];
    const float after = trainer.step(batch, 2).front().as<float>()[0];
    return after < before ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
