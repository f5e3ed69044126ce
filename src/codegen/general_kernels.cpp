#include "codegen/general_kernels.h"

#include "base/error.h"
#include "nests/generalise.h"

#include <map>
#include <optional>
#include <unordered_map>

namespace tenon::codegen {
namespace {

// Constant extents make code faster and shorter: smaller families keep them.
constexpr std::size_t kMany = 64;

struct Family {
  std::vector<std::size_t> kernels;
  nests::LoopNest nest;
};

}  // namespace

void share_general_kernels(TaskList& list) {
  std::vector<TaskList::Kernel>& kernels = list.kernels;
  if (kernels.size() < kMany) return;
  std::map<std::string, Family> families;
  std::vector<std::vector<std::int64_t>> numbers(kernels.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    std::optional<nests::GeneralNest> general = nests::generalised(kernels[k].nest);
    if (!general) continue;
    numbers[k] = std::move(general->numbers);
    Family& family = families[to_string(general->nest)];
    if (family.kernels.empty()) family.nest = std::move(general->nest);
    family.kernels.push_back(k);
  }
  constexpr std::size_t kAlone = SIZE_MAX;
  std::vector<std::size_t> taken_by(kernels.size(), kAlone);  // The first kernel of its family.
  for (auto& [text, family] : families) {
    if (family.kernels.size() < kMany) continue;
    for (const std::size_t k : family.kernels) taken_by[k] = family.kernels.front();
    nests::LoopNest& first = kernels[family.kernels.front()].nest;
    family.nest.name = first.name;
    first = std::move(family.nest);
  }

  std::vector<std::uint32_t> place_of(kernels.size());
  std::size_t count = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (taken_by[k] != kAlone && taken_by[k] != k) continue;
    place_of[k] = static_cast<std::uint32_t>(count);
    if (count != k) kernels[count] = std::move(kernels[k]);
    ++count;
  }
  kernels.resize(count);
  for (TaskList::Task& task : list.tasks) {
    for (TaskList::Alternative& alternative : task.alternatives) {
      for (TaskList::Call& call : alternative.calls) {
        const std::size_t before = call.kernel;
        const bool is_shared = taken_by[before] != kAlone;
        call.kernel = place_of[is_shared ? taken_by[before] : before];
        if (is_shared)
          call.extents.insert(call.extents.end(), numbers[before].begin(), numbers[before].end());
      }
    }
  }
}

}  // namespace tenon::codegen
