// running_sum: a program with a state, which a context passes from run to run.
#include <tenon/tenon.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

int main() {
  constexpr std::string_view kSum = R"(graph sum (x: f32[2], total: f32[2]) {
  state total to next = zeros
  next = add(total, x)
  return next, next
}
)";
  try {
    const tenon::Program program = tenon::Model(std::as_bytes(std::span(kSum))).compile();
    tenon::Context context = program.context({.threads = 1});
    const std::vector<float> one = {1, 1}, ten = {10, 10};
    context.run({tenon::Tensor(std::span(one), {2})});
    tenon::Context fork = context.fork();  // shares the state until one of both changes it
    context.run({tenon::Tensor(std::span(one), {2})});
    fork.run({tenon::Tensor(std::span(ten), {2})});
    std::printf("%g", context.read_state("total").as<float>()[0]);
    std::printf(" %g", fork.read_state("total").as<float>()[0]);
    context.write_state("total", tenon::Tensor(std::span(ten), {2}));
    std::printf(" %g", context.read_state("total").as<float>()[0]);
    context.reset_states();
    std::printf(" %g\n", context.read_state("total").as<float>()[0]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
