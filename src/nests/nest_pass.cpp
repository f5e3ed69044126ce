#include "nests/nest_pass.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>

namespace tenon::nests {

std::string to_string(const NestWork& work) {
  std::string text;
  for (const NestSequence::NestCall& part : work.sequence.parts) text += to_string(part.nest);
  return text;
}

void run_passes(std::span<const NestPass> passes, NestWork& work, const NestPassOptions& options) {
  for (const NestPass& pass : passes) {
    if (std::ranges::find(options.without, pass.name) != options.without.end()) continue;
    if (!options.on_pass) {
      pass.run(work);
      continue;
    }
    const NestWork before = work;
    const auto start = std::chrono::steady_clock::now();
    pass.run(work);
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    options.on_pass({pass, before, work, elapsed.count()});
  }
}

NestPass pass_of(std::span<const NestPassInfo> list, std::string_view name,
                 std::function<void(NestWork& work)> run) {
  const auto found = std::ranges::find(list, name, &NestPassInfo::name);
  TENON_ASSERT(found != list.end(), "the target's list has the pass");
  return {*found, std::move(run)};
}

}  // namespace tenon::nests
