#include "unit/memory/random_problem.h"

#include <algorithm>
#include <random>

namespace tenon::testing {

memory::Problem random_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t count) { return random() % count; };
  memory::Problem problem;
  problem.name = "random";
  const std::uint32_t forward = static_cast<std::uint32_t>(3 + below(12));
  const auto add_value = [&](std::uint64_t bytes) {
    problem.values.push_back(
        {"v" + std::to_string(problem.values.size()), bytes, false, below(8) != 0});
    return static_cast<std::uint32_t>(problem.values.size() - 1);
  };
  std::vector<std::uint32_t> made;
  for (std::uint32_t k = 0; k < forward; ++k) {
    memory::Item item;
    item.name = "f" + std::to_string(k);
    for (std::uint64_t reads = k == 0 ? 0 : 1 + below(2); reads > 0; --reads) {
      const std::uint32_t v = below(3) == 0 ? made[below(made.size())] : made.back();
      if (std::find(item.reads.begin(), item.reads.end(), v) == item.reads.end())
        item.reads.push_back(v);
    }
    for (std::uint64_t makes = below(6) == 0 ? 2 : 1; makes > 0; --makes) {
      const bool is_alike = !item.reads.empty() && below(3) == 0;
      const std::uint32_t v =
          add_value(is_alike ? problem.values[item.reads[0]].bytes : below(1000));
      item.makes.push_back(v);
      made.push_back(v);
      if (is_alike && below(2) == 0) item.may_share.emplace_back(v, item.reads[0]);
    }
    item.may_repeat = below(6) != 0;
    item.alternatives.push_back(
        {static_cast<double>(1 + below(100)) * 1e-3, below(3) == 0 ? below(300) : 0});
    problem.items.push_back(std::move(item));
  }
  // Backward items read a gradient and the values of their forward item.
  std::uint32_t gradient = static_cast<std::uint32_t>(-1);
  for (std::uint32_t k = forward; k-- > 0;) {
    memory::Item item;
    item.name = "b" + std::to_string(k);
    if (gradient != static_cast<std::uint32_t>(-1)) item.reads.push_back(gradient);
    for (const auto* list : {&problem.items[k].reads, &problem.items[k].makes}) {
      for (std::uint32_t v : *list) {
        if (below(2) == 0) item.reads.push_back(v);
      }
    }
    const std::uint32_t before = gradient;
    const bool is_alike = before != static_cast<std::uint32_t>(-1) && below(3) == 0;
    gradient = add_value(is_alike ? problem.values[before].bytes : below(1000));
    if (is_alike) item.may_share.emplace_back(gradient, before);
    item.makes.push_back(gradient);
    item.alternatives.push_back({static_cast<double>(1 + below(100)) * 1e-3, 0});
    problem.items.push_back(std::move(item));
  }
  problem.values[gradient].is_output = true;
  if (below(4) == 0) problem.values[made[below(made.size())]].is_output = true;
  problem.link =
      memory::Link{"link", static_cast<double>(1000 + below(100000)), below(2) == 0 ? 0 : 1e-3};
  return problem;
}

}  // namespace tenon::testing
