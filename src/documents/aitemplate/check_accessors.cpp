#include "documents/aitemplate/checker.h"

#include <algorithm>

namespace tenon::documents::aitemplate {
namespace {

using Groups = std::vector<AccessorRow::Group>;

std::vector<std::int64_t> range_of(std::size_t from, std::size_t to) {
  std::vector<std::int64_t> list;
  for (std::size_t k = from; k < to; ++k) list.push_back(static_cast<std::int64_t>(k));
  return list;
}

PythonValue to_python(const std::optional<Groups>& groups) {
  if (!groups) return PythonValue();
  PythonValue list = PythonValue::of(PythonValue::Kind::List);
  for (const auto& [original, actual] : *groups) {
    list.items.push_back(PythonValue::of(PythonValue::Kind::Tuple,
                                         {PythonValue::list(original), PythonValue::list(actual)}));
  }
  return list;
}

// Matches runs of dims with equal element counts; dims of extent 1 are matched separately. Returns
// nullopt if a dynamic dim would share a run.
std::optional<Groups> pair_dims(const std::vector<DimRow>& original,
                                const std::vector<DimRow>& actual) {
  Groups groups;
  std::size_t a = 0, b = 0;
  const auto is_one = [](const DimRow& dim) { return dim.is_static() && dim.least() == 1; };
  while (a < original.size() || b < actual.size()) {
    if (a < original.size() && is_one(original[a])) {
      groups.emplace_back(range_of(a, a + 1), range_of(0, 0));
      ++a;
      continue;
    }
    if (b < actual.size() && is_one(actual[b])) {
      groups.emplace_back(range_of(0, 0), range_of(b, b + 1));
      ++b;
      continue;
    }
    if (a == original.size() || b == actual.size()) return std::nullopt;
    const std::size_t first_a = a, first_b = b;
    if (!original[a].is_static() || !actual[b].is_static()) {
      if (original[a].values != actual[b].values) return std::nullopt;
      ++a, ++b;
    } else {
      std::uint64_t left = static_cast<std::uint64_t>(original[a++].least());
      std::uint64_t right = static_cast<std::uint64_t>(actual[b++].least());
      while (left != right) {
        std::uint64_t& after = left < right ? left : right;
        const std::vector<DimRow>& list = left < right ? original : actual;
        std::size_t& next = left < right ? a : b;
        if (next == list.size() || !list[next].is_static() || list[next].least() == 0)
          return std::nullopt;
        if (__builtin_mul_overflow(after, static_cast<std::uint64_t>(list[next++].least()), &after))
          return std::nullopt;
      }
    }
    groups.emplace_back(range_of(first_a, a), range_of(first_b, b));
  }
  return groups;
}

// Returns the product of static dims.
std::optional<std::int64_t> static_product(const std::vector<DimRow>& dims, std::size_t from) {
  std::int64_t product = 1;
  for (std::size_t k = from; k < dims.size(); ++k) {
    if (!dims[k].is_static() || __builtin_mul_overflow(product, dims[k].least(), &product))
      return std::nullopt;
  }
  return product;
}

}  // namespace

void DumpChecker::check_accessors(const OperatorRow& row, const Path& path) {
  const auto check = [&](const auto& accessors, const std::vector<std::string>& names,
                         std::string_view key) {
    for (std::size_t k = 0; accessors && k < accessors->size(); ++k) {
      check_accessor((*accessors)[k], tensor(names[k]), path / key / k);
    }
  };
  check(row.input_accessors, row.inputs, "input_accessors");
  check(row.output_accessors, row.outputs, "output_accessors");
}

void DumpChecker::check_accessor(const AccessorRow& accessor, const TensorRow& tensor,
                                 const Path& path) {
  const std::string kind = "accessors";
  const auto compare_optional = [&](std::string_view key, std::optional<std::int64_t> says,
                                    std::optional<std::int64_t> should_be) {
    const auto text = [](std::optional<std::int64_t> number) {
      return number ? std::to_string(*number) : "None";
    };
    compare(kind, path / key, text(says), text(should_be));
  };
  const auto compare_flag = [&](std::string_view key, bool says, bool should_be) {
    compare(kind, path / key, std::string(says ? "True" : "False"),
            std::string(should_be ? "True" : "False"));
  };
  const auto compare_shape = [&](std::string_view key, const std::vector<DimRow>& says) {
    PythonValue list = PythonValue::of(PythonValue::Kind::List), expected = list;
    for (const DimRow& dim : says) list.items.push_back(aitemplate::to_python(dim));
    for (const DimRow& dim : tensor.shape) expected.items.push_back(aitemplate::to_python(dim));
    compare_values(kind, path / key, list, expected);
  };
  const bool knows_dtype = std::find(accessor.absent.begin(), accessor.absent.end(),
                                     "tensor_dtype") == accessor.absent.end();
  if (knows_dtype) compare(kind, path / "tensor_dtype", accessor.tensor_dtype, tensor.dtype);
  check_mapping(accessor, path);
  if (!accessor.actual_shapes) {
    const bool is_flat =
        accessor.original_shapes.size() != tensor.shape.size() &&
        static_product(accessor.original_shapes, 0) == static_product(tensor.shape, 0);
    if (is_flat) {
      findings_.hold(kind);
    } else {
      compare_shape("original_shapes", accessor.original_shapes);
    }
    compare_optional("stride_dim", accessor.stride_dim, std::nullopt);
  } else {
    compare_shape("actual_shapes", *accessor.actual_shapes);
    check_dims(accessor.original_shapes, path / "original_shapes");
  }
  const bool is_strided =
      accessor.stride_dim && accessor.actual_shapes && *accessor.stride_dim >= 0 &&
      static_cast<std::size_t>(*accessor.stride_dim) < accessor.actual_shapes->size();
  if (accessor.stride_dim && accessor.actual_shapes && !is_strided) {
    findings_.miss(
        kind, [&] { return place(path / "stride_dim"); }, std::to_string(*accessor.stride_dim),
        "an axis of the tensor");
    return;
  }
  if (!is_strided) {
    compare(kind, path / "offset", accessor.offset, 0);
    compare_optional("original_total_elements_from_stride_dim", accessor.original_total_elements,
                     std::nullopt);
    compare_optional("actual_total_elements_from_stride_dim", accessor.actual_total_elements,
                     std::nullopt);
    compare_flag("is_contiguous", accessor.is_contiguous, true);
    compare_flag("is_from_strided_tensor", accessor.is_from_strided_tensor, false);
    return;
  }
  const auto axis = static_cast<std::size_t>(*accessor.stride_dim);
  const std::vector<DimRow>& actual = *accessor.actual_shapes;
  const auto pitch = static_product(actual, axis), unit = static_product(actual, axis + 1);
  // Axes before the strided one are equal; the remaining accessed elements form a row.
  std::optional<std::int64_t> row;
  if (accessor.original_shapes.size() == actual.size()) {
    row = static_product(accessor.original_shapes, axis);
  } else {
    try {
      const Dims all = dims_.dims(accessor.original_shapes);
      const Dims before =
          dims_.dims({actual.begin(), actual.begin() + static_cast<std::ptrdiff_t>(axis)});
      row = floor_div(product(all), product(before)).value();
    } catch (const Error&) {
      row = std::nullopt;
    }
  }
  compare_optional("actual_total_elements_from_stride_dim", accessor.actual_total_elements, pitch);
  if (row)
    compare_optional("original_total_elements_from_stride_dim", accessor.original_total_elements,
                     row);
  if (!row || !pitch || !unit || *unit == 0) return;
  const std::int64_t furthest = std::max<std::int64_t>(*pitch - *row, 0);
  compare(kind, path / "offset", accessor.offset,
          std::min(accessor.offset - accessor.offset % *unit, furthest));
  compare_flag("is_contiguous", accessor.is_contiguous, !(axis > 0 && *pitch > *row));
  compare_flag("is_from_strided_tensor", accessor.is_from_strided_tensor, *pitch > *row);
}

void DumpChecker::check_mapping(const AccessorRow& accessor, const Path& path) {
  Groups identity;
  for (std::size_t k = 0; k < accessor.original_shapes.size(); ++k)
    identity.emplace_back(range_of(k, k + 1), range_of(k, k + 1));
  std::optional<Groups> expected = identity;
  if (accessor.actual_shapes) {
    std::vector<DimRow> viewed = *accessor.actual_shapes;
    const bool has_stride = accessor.stride_dim && *accessor.stride_dim >= 0 &&
                            static_cast<std::size_t>(*accessor.stride_dim) < viewed.size();
    bool is_view = !has_stride || viewed.size() != accessor.original_shapes.size();
    if (has_stride && accessor.original_total_elements) {
      const auto axis = static_cast<std::size_t>(*accessor.stride_dim);
      const auto unit = static_product(viewed, axis + 1);
      if (unit && *unit > 0) viewed[axis].values = {*accessor.original_total_elements / *unit};
      for (std::size_t k = 0; !is_view && k < viewed.size(); ++k)
        is_view = viewed[k].values != accessor.original_shapes[k].values;
    }
    if (is_view) expected = pair_dims(accessor.original_shapes, viewed);
  }
  compare_values("accessors", path / "_dim_mapping", to_python(accessor.dim_mapping),
                 to_python(expected));
}

// Requires that operators that write one tensor write adjacent regions.
void DumpChecker::check_parts() {
  struct Part {
    std::int64_t offset = 0, count = 0;
    std::string place_path;
  };
  std::map<std::size_t, std::vector<Part>> parts;
  for (std::size_t k = 0; k < dump_.operators.size(); ++k) {
    const OperatorRow& row = dump_.operators[k];
    for (std::size_t j = 0; row.output_accessors && j < row.output_accessors->size(); ++j) {
      const AccessorRow& accessor = (*row.output_accessors)[j];
      if (!accessor.stride_dim || !accessor.original_total_elements) continue;
      parts[tensors_.at(row.outputs[j])].push_back(
          {accessor.offset, *accessor.original_total_elements,
           (operator_path(k) / "output_accessors" / j / "offset").text});
    }
  }
  for (auto& [tensor, list] : parts) {
    if (list.size() < written_by_[tensor].size()) continue;  // a concatenation fills the gaps
    std::stable_sort(list.begin(), list.end(),
                     [](const Part& a, const Part& b) { return a.offset < b.offset; });
    std::int64_t next = 0;
    for (const Part& part : list) {
      compare("accessors", Path{part.place_path}, part.offset, next);
      next = part.offset + part.count;
    }
  }
}

}  // namespace tenon::documents::aitemplate
