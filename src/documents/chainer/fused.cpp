#include "documents/chainer/fused.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

constexpr std::int64_t kElementBytes = 4;  // Chainer computes in f32

class Fuser {
 public:
  Fuser(const TrainingGraph& graph, std::vector<ChainerStep> steps)
      : graph_(graph), steps_(std::move(steps)) {}

  std::vector<ChainerStep> run() {
    for (ChainerStep& each : steps_) join_pointwise(each);
    for (ChainerStep& each : steps_) {
      const std::string& function = each.step.function;
      if (function == "MaxPooling2D") {
        each.step.retained = {};
        each.step.hidden_bytes = graph_.tensors[each.step.makes[0]].bytes / kElementBytes;
      } else if (function == "Concat") {
        read_sources(each);
      } else if (function == "GetItem") {
        each.is_view = true;
      }
    }
    for (ChainerStep& each : steps_) {
      each.has_halves = each.products > 0 && each.factor_gradients == 2;
      leave_masks_to_readers(each);
    }
    std::erase_if(steps_, [](const ChainerStep& each) { return each.step.makes.empty(); });
    return std::move(steps_);
  }

 private:
  ChainerStep* only_reader(std::size_t tensor) {
    ChainerStep* found = nullptr;
    for (ChainerStep& each : steps_) {
      if (std::ranges::find(each.step.reads, tensor) == each.step.reads.end()) continue;
      if (found != nullptr) return nullptr;
      found = &each;
    }
    return found;
  }

  // The mask is where the result is above zero.
  void join_pointwise(ChainerStep& each) {
    for (const char* function : {"ReLU", "Dropout"}) {
      if (each.products == 0 || each.step.makes.size() != 1) return;
      ChainerStep* next = only_reader(each.step.makes[0]);
      if (next == nullptr || next->step.function != function) return;
      each.step.makes = next->step.makes;
      each.step.retained.outputs = next->step.makes;
      next->step.makes.clear();
      next->step.reads.clear();
    }
  }

  // Products that keep their operands apply the mask to the gradient themselves.
  void leave_masks_to_readers(ChainerStep& each) {
    if (each.products == 0 || each.step.makes.size() != 1) return;
    const std::size_t result = each.step.makes[0];
    const auto has = [&](const std::vector<std::size_t>& list) {
      return std::ranges::find(list, result) != list.end();
    };
    const bool is_masked =
        !each.step.retained.outputs.empty() &&
        std::ranges::all_of(steps_, [&](const ChainerStep& other) {
          return !has(other.step.reads) || (other.products > 0 && has(other.step.retained.inputs));
        });
    if (!is_masked) return;
    each.step.retained.outputs.clear();
    for (ChainerStep& other : steps_) {
      if (has(other.step.reads)) other.masked.push_back(result);
    }
  }

  static void replace(std::vector<std::size_t>& list, std::size_t tensor,
                      const std::vector<std::size_t>& by) {
    const auto found = std::ranges::find(list, tensor);
    if (found == list.end()) return;
    list.insert(list.erase(found), by.begin(), by.end());
  }

  void read_sources(ChainerStep& concat) {
    const std::size_t joined = concat.step.makes[0];
    ChainerStep* reader = only_reader(joined);
    if (reader == nullptr || reader->products == 0) return;
    replace(reader->step.reads, joined, concat.step.reads);
    replace(reader->step.retained.inputs, joined, concat.step.reads);
    concat.step.makes.clear();
    concat.step.reads.clear();
  }

  const TrainingGraph& graph_;
  std::vector<ChainerStep> steps_;
};

}  // namespace

std::vector<ChainerStep> fused(const TrainingGraph& graph, std::vector<ChainerStep> steps) {
  return Fuser(graph, std::move(steps)).run();
}

}  // namespace tenon::documents::chainer
