#include "documents/aitemplate/kernel_choices.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace tenon::documents::aitemplate {
namespace {

std::string condition_on(const std::string& name, std::int64_t lo, std::int64_t hi) {
  return lo == hi ? concat(name, " == ", lo) : concat(name, " >= ", lo, " && ", name, " <= ", hi);
}

// Returns the choices whose range intersects [least, greatest], clipped to it.
std::vector<KernelChoices::ProfiledKernel> between(const KernelChoices& choices, std::int64_t least,
                                                   std::int64_t greatest) {
  std::vector<KernelChoices::ProfiledKernel> list;
  for (KernelChoices::ProfiledKernel choice : choices.choices) {
    choice.lo = std::max(choice.lo, least);
    choice.hi = std::min(choice.hi, greatest);
    if (choice.lo <= choice.hi) list.push_back(std::move(choice));
  }
  return list;
}

}  // namespace

std::string algorithm_name(const std::string& kernel) {
  std::string name = "tenon_" + kernel;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

std::optional<ExecPath> profiled_convolution(const std::vector<DimRow>& image, const Dim& batch,
                                             const KernelChoices& choices) {
  if (image.size() != 4) return std::nullopt;
  std::vector<KernelChoices::ProfiledKernel> list;
  if (choices.symbol.empty() && image[0].is_static()) {
    list = {{image[0].least(), image[0].least(), choices.choices.front().kernel}};
  } else if (!choices.symbol.empty() && batch.symbol_name() == choices.symbol) {
    list = between(choices, image[0].least(), image[0].greatest());
  }
  if (list.empty()) return std::nullopt;
  ExecPath path;
  for (const auto& [lo, hi, kernel] : list) {
    path.entries.push_back(
        {concat(condition_on("NI", lo, hi), " && HI == ", image[1].greatest(),
                " && WI == ", image[2].greatest(), " && CI == ", image[3].greatest()),
         PythonValue::string(algorithm_name(kernel))});
  }
  return path;
}

std::optional<ExecPath> profiled_gemm(const GemmExtents& product, const KernelChoices& choices) {
  const auto varies =
      std::find_if(product.extents.begin(), product.extents.end(),
                   [](const auto& extent) { return extent.least != extent.greatest; });
  std::vector<KernelChoices::ProfiledKernel> list;
  if (varies == product.extents.end()) {
    if (!choices.symbol.empty()) return std::nullopt;
    list = {choices.choices.front()};
  } else {
    const bool is_only = std::none_of(varies + 1, product.extents.end(), [](const auto& extent) {
      return extent.least != extent.greatest;
    });
    if (!is_only || choices.symbol.empty() || varies->symbol != choices.symbol) return std::nullopt;
    list = between(choices, varies->least, varies->greatest);
  }
  ExecPath path;
  for (const auto& [lo, hi, kernel] : list) {
    std::vector<std::string> profiled, holds;
    for (auto extent = product.extents.begin(); extent != product.extents.end(); ++extent) {
      profiled.push_back(condition_on(extent->name, extent == varies ? hi : extent->greatest,
                                      extent == varies ? hi : extent->greatest));
      holds.push_back(condition_on(extent->name, extent == varies ? lo : extent->least,
                                   extent == varies ? hi : extent->greatest));
    }
    PythonValue item = PythonValue::of(PythonValue::Kind::Call);
    item.text = "ExecItem";
    item.set("profiling_key", PythonValue::string(join(profiled, " && ")));
    item.set("exec_cond", PythonValue::string(join(holds, " && ")));
    item.set("algo", PythonValue::string(algorithm_name(kernel)));
    path.entries.push_back({join(profiled, " && "), std::move(item)});
  }
  if (path.entries.empty()) return std::nullopt;
  return path;
}

namespace {

const TensorRow* tensor_named(const Dump& dump, const std::string& name) {
  const auto found = std::find_if(dump.tensors.begin(), dump.tensors.end(),
                                  [&](const TensorRow& row) { return row.name == name; });
  return found == dump.tensors.end() ? nullptr : &*found;
}

bool is_profiled(const ExecPath& path) {
  return std::any_of(path.entries.begin(), path.entries.end(),
                     [](const ExecEntry& entry) { return algorithm_of(entry) != ""; });
}

}  // namespace

Dump with_kernels(Dump dump, const Graph& noted) {
  for (OperatorRow& row : dump.operators) {
    if (!row.exec_path || is_profiled(*row.exec_path) || row.outputs.empty() || row.inputs.empty())
      continue;
    const ValueId result = noted.find(row.outputs.front());
    const TensorRow* image = tensor_named(dump, row.inputs.front());
    if (!result || image == nullptr || image->shape.size() != 4) continue;
    const auto choices = noted_choices(noted, result);
    const auto* symbol = std::get_if<std::string>(&image->shape[0].symbolic_value);
    if (!choices) continue;
    const Dim batch = symbol == nullptr ? Dim(image->shape[0].least()) : Dim::symbol(*symbol);
    auto profiled = profiled_convolution(image->shape, batch, *choices);
    if (profiled) row.exec_path = std::move(profiled);
  }
  return dump;
}

}  // namespace tenon::documents::aitemplate
