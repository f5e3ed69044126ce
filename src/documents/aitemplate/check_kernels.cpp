#include "base/error.h"
#include "base/text.h"
#include "documents/aitemplate/checker.h"
#include "documents/aitemplate/kernel_facts.h"
#include "documents/aitemplate/operator_import.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

bool is_profiled(const OperatorRow& row) {
  if (!row.exec_path) return false;
  return std::any_of(row.exec_path->entries.begin(), row.exec_path->entries.end(),
                     [](const ExecEntry& entry) { return algorithm_of(entry) != ""; });
}

// Parses "NI >= 1 && NI <= 8 && CI == 3" to the range of each name.
std::optional<std::map<std::string, Range>> parse_condition(const std::string& condition) {
  std::map<std::string, Range> ranges;
  std::string_view rest = condition;
  while (!rest.empty()) {
    const std::size_t end = rest.find("&&");
    const std::vector<std::string> words = split(trim(rest.substr(0, end)), ' ');
    rest = end == std::string_view::npos ? "" : rest.substr(end + 2);
    const auto number = words.size() == 3 ? parse_integer(words[2]) : std::nullopt;
    if (!number || *number < 0 || *number > kMaxExtent) return std::nullopt;
    Range& range = ranges.try_emplace(words[0], Range{0, kMaxExtent}).first->second;
    if (words[1] == "==" || words[1] == ">=") range.lo = *number;
    if (words[1] == "==" || words[1] == "<=") range.hi = *number;
    if (words[1] != "==" && words[1] != ">=" && words[1] != "<=") return std::nullopt;
  }
  return ranges;
}

// Saturates above the largest extent.
std::int64_t product_of(const std::vector<DimRow>& dims, std::size_t from, std::size_t to,
                        bool at_least) {
  std::int64_t product = 1;
  for (std::size_t k = from; k < to; ++k) {
    if (__builtin_mul_overflow(product, at_least ? dims[k].least() : dims[k].greatest(), &product))
      return kMaxExtent;
  }
  return product;
}

}  // namespace

void DumpChecker::check_workspace(const OperatorRow& row, const Path& path) {
  if (!is_profiled(row))
    compare_attribute("kernels", row, path, "workspace", PythonValue::number(0));
}

void DumpChecker::check_convolution(const OperatorRow& row, const Composite& composite,
                                    const Path& path) {
  if (row.inputs.size() < 2) return;
  const std::vector<DimRow>& image = input_shape(row, 0);
  const std::vector<DimRow>& weight = input_shape(row, 1);
  compare("flags", path / "has_profiler",
          std::string(row.has_profiler.value_or(true) ? "True" : "False"), std::string("True"));
  if (image.size() == 4 && weight.size() == 4) {
    const bool is_transposed = composite.base == Composite::Base::TransposedConv;
    const std::int64_t outputs = weight[is_transposed ? 3 : 0].least();
    compare_attribute("convolutions", row, path, "CO", PythonValue::number(outputs));
    compare_attribute("convolutions", row, path, "KH", PythonValue::number(weight[1].least()));
    compare_attribute("convolutions", row, path, "KW", PythonValue::number(weight[2].least()));
    std::vector<std::int64_t> least;
    for (const DimRow& dim : image) least.push_back(dim.least());
    compare_attribute("convolutions", row, path, "dim_lower_bounds", PythonValue::list(least));
    check_conditions(row, image, path);
  }
  compare_attribute("kernels", row, path, "epilogue",
                    PythonValue::string(epilogue_name(composite.steps)));
  const std::vector<DimRow>& result = output_shape(row, 0);
  if (!result.empty() && result.back().is_static()) {
    compare_attribute(
        "kernels", row, path, "epilogue_alignment",
        PythonValue::number(alignment_of(result.back().least(), tensor(row.inputs[0]).dtype)));
  }
  check_workspace(row, path);
}

// Before profiling, a dump has one condition per batch value; afterwards its conditions cover
// ranges of each extent.
void DumpChecker::check_conditions(const OperatorRow& row, const std::vector<DimRow>& image,
                                   const Path& path) {
  if (!row.exec_path) return;
  const Path list = path / "exec_path";
  const std::vector<ExecEntry>& entries = row.exec_path->entries;
  const std::vector<ExecEntry> expected = convolution_conditions(image).entries;
  if (!is_profiled(row)) {
    compare("conditions of kernels", list, entries.size(), expected.size());
    for (std::size_t k = 0; k < std::min(entries.size(), expected.size()); ++k) {
      compare("conditions of kernels", list / k, entries[k].condition, expected[k].condition);
    }
    return;
  }
  const std::vector<std::string> names = {"NI", "HI", "WI", "CI"};
  std::int64_t next = image[0].least();
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const auto ranges = parse_condition(entries[k].condition);
    const bool is_complete = ranges && ranges->size() == names.size() &&
                             std::all_of(names.begin(), names.end(), [&](const std::string& name) {
                               return ranges->contains(name);
                             });
    if (!is_complete) {
      findings_.miss(
          "conditions of kernels", [&] { return place(list / k); }, entries[k].condition,
          "a condition on NI, HI, WI and CI");
      continue;
    }
    for (std::size_t axis = 1; axis < names.size(); ++axis) {
      const Range range = ranges->at(names[axis]);
      const bool is_range = range.lo != range.hi;
      compare("conditions of kernels", list / k, range.hi, image[axis].greatest());
      compare("conditions of kernels", list / k, range.lo,
              is_range ? image[axis].least() : image[axis].greatest());
    }
    const Range batch = ranges->at("NI");
    const bool is_range = batch.lo != batch.hi;
    if (is_range) {
      compare("conditions of kernels", list / k, batch.lo, next);
    } else {
      const auto& values = image[0].values;
      const bool is_value =
          std::find(values.begin(), values.end(), batch.lo) != values.end() || batch.lo == next;
      compare("conditions of kernels", list / k, batch.lo, is_value ? batch.lo : next);
    }
    next = batch.hi + 1;
  }
  if (!entries.empty())
    compare("conditions of kernels", list / (entries.size() - 1), next, image[0].greatest() + 1);
}

void DumpChecker::check_gemm(const OperatorRow& row, const Composite& composite, const Path& path) {
  compare("flags", path / "has_profiler",
          std::string(row.has_profiler.value_or(true) ? "True" : "False"), std::string("True"));
  compare_attribute("kernels", row, path, "epilogue",
                    PythonValue::string(epilogue_name(composite.steps)));
  compare_attribute("kernels", row, path, "num_sources",
                    PythonValue::number(source_count(composite.steps)));
  const std::vector<DimRow>& result = output_shape(row, 0);
  if (!result.empty() && result.back().is_static()) {
    compare_attribute("kernels", row, path, "epilogue_alignment",
                      PythonValue::number(alignment_of(
                          result.back().least(),
                          tensor(row.inputs.empty() ? row.outputs[0] : row.inputs[0]).dtype)));
  }
  if (!is_profiled(row)) {
    compare_attribute("kernels", row, path, "split_k", PythonValue::number(1));
    check_workspace(row, path);
  }
  if (!row.exec_path || row.inputs.size() < 2) return;
  // Derives M, N and K (and B) from the operands.
  const std::vector<DimRow>& a = input_shape(row, 0);
  const std::vector<DimRow>& b = input_shape(row, 1);
  const bool is_batched = composite.base == Composite::Base::Bmm;
  if (a.size() < (is_batched ? 3 : 2) || b.size() < 2) return;
  const auto ranges_of = [&](bool at_least) {
    std::map<std::string, std::int64_t> numbers;
    const bool is_row = composite.layout[0] == 'r';
    const std::size_t lead = is_batched ? 1 : 0;
    if (is_batched) numbers["B"] = product_of(a, 0, 1, at_least);
    numbers["M"] = is_row ? product_of(a, lead, a.size() - 1, at_least)
                          : product_of(a, a.size() - 1, a.size(), at_least);
    numbers["K"] = is_row ? product_of(a, a.size() - 1, a.size(), at_least)
                          : product_of(a, lead, a.size() - 1, at_least);
    numbers["N"] = composite.layout[1] == 'r' ? product_of(b, b.size() - 1, b.size(), at_least)
                                              : product_of(b, b.size() - 2, b.size() - 1, at_least);
    return numbers;
  };
  const auto least = ranges_of(true), greatest = ranges_of(false);
  // Ranges must be consecutive from the least value to the greatest.
  std::map<std::string, std::int64_t> next = least;
  std::set<std::string> in_ranges;
  const auto check = [&](const std::string& condition, const Path& at) {
    const auto ranges = parse_condition(condition);
    for (const auto& [name, most] : greatest) {
      const auto found = ranges ? ranges->find(name) : decltype(ranges->find(name))();
      if (!ranges || found == ranges->end()) {
        findings_.miss(
            "conditions of kernels", [&] { return place(at); }, condition,
            concat("a condition on ", name));
        continue;
      }
      const auto [lo, hi] = found->second;
      const bool follows = least.at(name) != most && lo == next.at(name) && hi <= most;
      const bool is_one_end = lo == hi && (lo == most || lo == least.at(name));
      compare("conditions of kernels", at, lo,
              lo != hi                ? next.at(name)
              : is_one_end || follows ? lo
                                      : most);
      compare("conditions of kernels", at, hi, is_one_end || follows ? hi : most);
      if (lo != hi) in_ranges.insert(name);
      if (follows) next[name] = hi + 1;
    }
    return ranges;
  };
  for (std::size_t k = 0; k < row.exec_path->entries.size(); ++k) {
    const ExecEntry& entry = row.exec_path->entries[k];
    const Path place_of = path / "exec_path" / k;
    const PythonValue* key =
        entry.choice.is(Kind::Call) ? entry.choice.find("profiling_key") : nullptr;
    const PythonValue* condition =
        entry.choice.is(Kind::Call) ? entry.choice.find("exec_cond") : nullptr;
    if (key != nullptr && key->is(Kind::Text))
      compare("conditions of kernels", place_of / "profiling_key", key->text, entry.condition);
    if (condition == nullptr || !condition->is(Kind::Text)) {
      check(entry.condition, place_of);
      continue;
    }
    // The profiled extents must lie in the kernel's condition.
    const auto holds = check(condition->text, place_of / "exec_cond");
    const auto profiled = parse_condition(entry.condition);
    for (const auto& [name, most] : greatest) {
      if (!profiled || !profiled->contains(name)) {
        findings_.miss(
            "conditions of kernels", [&] { return place(place_of); }, entry.condition,
            concat("a condition on ", name));
      } else if (holds && holds->contains(name)) {
        const auto [lo, hi] = holds->at(name);
        const Range& value = profiled->at(name);
        compare("conditions of kernels", place_of, value.lo,
                std::clamp(value.lo, lo, std::max(lo, hi)));
        compare("conditions of kernels", place_of, value.hi,
                std::clamp(value.hi, lo, std::max(lo, hi)));
      }
    }
  }
  for (const std::string& name : in_ranges)
    compare("conditions of kernels", path / "exec_path", next.at(name), greatest.at(name) + 1);
}

}  // namespace tenon::documents::aitemplate
