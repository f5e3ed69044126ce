#include "autodiff/differentiate.h"
#include "documents/chainer/writer.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

bool is_float_tensor(const Type& type) { return type.is_tensor() && is_float(type.tensor().dtype); }

}  // namespace

// Differentiates the extracted node and, after dead-code elimination, collects the forward values
// that the gradient reads.
Retained retained_by_gradient(const Graph& record) {
  Builder build;
  std::vector<Var> inputs, sources;
  for (const ValueId input : record.inputs()) {
    const Value& value = record.value(input);
    inputs.push_back(build.input(value.name, value.type));
    if (is_float_tensor(value.type)) sources.push_back(inputs.back());
  }
  const std::vector<Var> results = build_native(record, build, inputs);
  Graph& scratch = build.graph();
  const NodeId forward = scratch.last();

  std::vector<ValueId> gradients;
  for (std::size_t k = 0; k < results.size() && !sources.empty(); ++k) {
    if (!results[k].is_valid() || !is_float_tensor(build.type(results[k]))) continue;
    // Upstream gradient of the result's own type, including layout.
    const Type type = build.type(results[k]);
    const Var loss = results[k] * build.input(concat("upstream", k), type);
    for (const Var gradient : differentiate(build, loss, sources))
      gradients.emplace_back(gradient.id());
  }
  // A gradient may itself be a forward value, which then counts as read.
  const std::vector<ValueId> outputs = gradients;
  scratch.set_outputs(std::move(gradients));
  scratch.erase_dead();
  const auto is_kept = [&](Var value) {
    if (!value.is_valid()) return false;
    const ValueId id_of(value.id());
    if (std::find(outputs.begin(), outputs.end(), id_of) != outputs.end()) return true;
    const std::vector<NodeId>& readers = scratch.readers(id_of);
    return std::any_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return reader != forward; });
  };
  Retained retained;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (is_kept(inputs[k])) retained.inputs.push_back(static_cast<std::int64_t>(k));
  }
  for (std::size_t k = 0; k < results.size() && scratch.is_live(forward); ++k) {
    if (is_kept(results[k])) retained.outputs.push_back(static_cast<std::int64_t>(k));
  }
  return retained;
}

}  // namespace tenon::documents::chainer
