// run_program PROGRAM.tnn: runs it with the runtime library only, in memory that the runtime
// allocates.
#include <tenon/tenon.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    tenon::Context context = tenon::Program(argv[1]).context({.threads = 1});
    std::vector<float> x(784);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7) - 3;
    for (const tenon::Tensor& output : context.run({tenon::Tensor(std::span(x), {1, 784})})) {
      for (const float value : output.as<float>()) std::printf("%.6g\n", value);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
