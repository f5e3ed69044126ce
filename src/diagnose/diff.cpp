#include "diagnose/diff.h"

#include "models/inputs.h"
#include "reference/evaluate.h"

namespace tenon::diagnose {

const ValueDifference* ValuesDiff::first() const {
  for (const ValueDifference& value : values) {
    if (!value.comparison.is_equal) return &value;
  }
  return nullptr;
}

ValuesDiff diff_values(const ValueList& a, const ValueList& b,
                       const testing::Tolerance& tolerance) {
  // A dump of another system may have its names encoded as file names.
  std::map<std::string, const Tensor*> known;
  std::map<std::string, bool> is_met;
  for (const auto& [name, value] : b.values) known[models::file_name_of(name)] = &value;
  ValuesDiff diff;
  for (const auto& [name, value] : a.values) {
    const auto found = known.find(models::file_name_of(name));
    if (found == known.end()) {
      diff.only_a.push_back(name);
      continue;
    }
    is_met[found->first] = true;
    diff.values.push_back({name, to_string(Datum(value).type()),
                           compare(Datum(*found->second), Datum(value), tolerance)});
  }
  for (const auto& [name, value] : b.values) {
    if (!is_met[models::file_name_of(name)]) diff.only_b.push_back(name);
  }
  return diff;
}

std::string first_differing_pass(const Graph& graph, const std::vector<Datum>& inputs,
                                 std::span<const passes::Pass> passes,
                                 const testing::Tolerance& tolerance, int threads) {
  reference::EvaluateOptions options;
  options.thread_count = threads;
  const std::vector<Datum> expected = reference::evaluate(graph, inputs, options);
  Graph made = graph;
  for (const passes::Pass& pass : passes) {
    made = driver::run_passes(std::move(made), std::span(&pass, 1), {});
    const std::vector<Datum> actual = reference::evaluate(made, inputs, options);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      if (!compare(actual.at(k), expected[k], tolerance).is_equal) return pass.name;
    }
  }
  return "";
}

}  // namespace tenon::diagnose
