#include "api/outputs.h"

#include "api/handles.h"
#include "base/error.h"
#include "embed/tensor.h"
#include "host/values.h"

#include <algorithm>
#include <cstdint>

namespace tenon::api {

void KeptOutputs::begin(std::span<const tenon_tensor> inputs,
                        std::span<const tenon_tensor> outputs) {
  // By tensor of the last run: whether this run writes to it.
  std::vector<bool> is_output;
  for (const Tensor& tensor : kept_) {
    const std::span<const std::byte> bytes = tensor.bytes();
    is_output.push_back(std::ranges::any_of(outputs, [&](const tenon_tensor& output) {
      const auto* data = static_cast<const std::byte*>(output.data);
      return (data >= bytes.data() && data < bytes.data() + bytes.size()) ||
             (data != nullptr && output.shape == tensor.shape().data());
    }));
  }
  std::vector<std::string> names;
  names.reserve(inputs.size() + outputs.size() + kept_.size());
  std::vector<embed::PortMemory> memory;
  const auto add = [&](const void* data, std::uint64_t bytes, std::string name, bool is_output) {
    names.push_back(std::move(name));
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    memory.push_back({begin, begin + bytes, &names.back(), is_output});
  };
  for (std::size_t k = 0; k < inputs.size(); ++k)
    add(inputs[k].data, embed::byte_count(inputs[k], "an input"), concat("input ", k), false);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k].data == nullptr) continue;
    add(outputs[k].data, embed::byte_count(outputs[k], "an output"), concat("output ", k), true);
  }
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    if (is_output[k]) continue;
    add(kept_[k].bytes().data(), kept_[k].byte_size(), "an output of the last run", true);
  }
  embed::require_disjoint(memory);
  // Moves, because the caller's descriptions point to the shapes.
  std::vector<Tensor> rewritten;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    if (is_output[k]) rewritten.push_back(std::move(kept_[k]));
  }
  kept_ = std::move(rewritten);
}

void KeptOutputs::end(std::vector<Datum> results, std::span<const tenon_tensor> inputs,
                      std::span<tenon_tensor> outputs, std::span<const std::byte> constants,
                      const NameOf& name_of) {
  std::vector<std::span<const std::byte>> foreign = {constants};
  for (const tenon_tensor& input : inputs) {
    foreign.emplace_back(static_cast<const std::byte*>(input.data),
                         embed::byte_count(input, "an input"));
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!results[k].is_tensor()) {
      throw Error(concat(name_of(k), " is no tensor"), ErrorKind::Usage)
          .got(results[k].type())
          .hint("tenon_context_run_values gives it");
    }
    require_fits(results[k].tensor().type(), outputs[k], name_of(k));
    if (outputs[k].data != nullptr) continue;
    results[k] = detached(std::move(results[k]), foreign);
    foreign.push_back(results[k].tensor().bytes());
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    Tensor kept;
    const bool is_kept = outputs[k].data == nullptr;
    give(results[k].tensor(), outputs[k], kept, name_of(k));
    if (is_kept) kept_.push_back(std::move(kept));
  }
}

}  // namespace tenon::api
