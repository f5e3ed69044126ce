#pragma once

#include "documents/aitemplate/tables.h"

#include <concepts>
#include <type_traits>

// Attributes of every object in a dump, defined once for reader and printer.
namespace tenon::documents::aitemplate {

/// A list of one tensor, or None if empty.
template <class Rows>
struct OneOrNone {
  Rows& rows;
};
/// Text of an object without a form of its own.
template <class Text>
struct Opaque {
  Text& text;
};

template <class T, class Row>
concept Is = std::same_as<std::remove_const_t<T>, Row>;

/// Visits each attribute with its name and field; `.noted` marks attributes that some versions do
/// not print, `.maybe` those that only some operators have.
void fields(auto& attribute, Is<DimRow> auto& row) {
  attribute("depth", row.depth);
  attribute("name", row.name);
  attribute("nop", row.is_nop);
  attribute("values", row.values);
  attribute.noted("symbolic_value", row.symbolic_value);
}

void fields(auto& attribute, Is<TensorRow> auto& row) {
  attribute("name", row.name);
  attribute("dtype", row.dtype);
  attribute("shape", row.shape);
  attribute("depth", row.depth);
  attribute("src_ops", row.src_ops);
  attribute("dst_ops", row.dst_ops);
  attribute("nop", row.is_nop);
  attribute("is_input", row.is_input);
  attribute("is_output", row.is_output);
  attribute.noted("is_param", row.is_param);
  attribute.noted("is_internal_constant", row.is_internal_constant);
  attribute.noted("has_output_aliases", row.has_output_aliases);
  attribute.noted("check_nan_and_inf", row.check_nan_and_inf);
  attribute.noted("check_outputs", row.check_outputs);
  attribute.noted("skip_constant_folding", row.skip_constant_folding);
  attribute.noted("original_name", row.original_name);
  attribute.noted("is_view_of", OneOrNone{row.is_view_of});
  attribute.noted("external_tensor", OneOrNone{row.external_tensor});
  attribute.noted("value", row.value);
  attribute.noted("data", Opaque{row.data});
  attribute.noted("offset", row.offset);
  attribute.noted("constant_folding_output_idx", row.constant_folding_output_idx);
}

void fields(auto& attribute, Is<AccessorRow> auto& row) {
  attribute("_dim_mapping", row.dim_mapping);
  attribute("original_shapes", row.original_shapes);
  attribute("actual_shapes", row.actual_shapes);
  attribute("offset", row.offset);
  attribute("stride_dim", row.stride_dim);
  attribute("original_total_elements_from_stride_dim", row.original_total_elements);
  attribute("actual_total_elements_from_stride_dim", row.actual_total_elements);
  attribute("is_contiguous", row.is_contiguous);
  attribute.noted("is_from_strided_tensor", row.is_from_strided_tensor);
  attribute.noted("tensor_dtype", row.tensor_dtype);
}

void fields(auto& attribute, Is<OperatorRow> auto& row) {
  attribute("op", row.op);
  attribute("name", row.name);
  attribute.maybe("original_name", row.original_name);
  attribute("depth", row.depth);
  attribute("nop", row.is_nop);
  attribute.maybe("has_profiler", row.has_profiler);
  attribute("inputs", row.inputs);
  attribute("outputs", row.outputs);
  attribute.maybe("args", row.args);
  attribute.maybe("original_inputs", row.original_inputs);
  attribute.maybe("original_outputs", row.original_outputs);
  attribute.maybe("input_accessors", row.input_accessors);
  attribute.maybe("output_accessors", row.output_accessors);
  attribute.maybe("func", row.func);
  attribute.maybe("elementwise_ops", row.elementwise_ops);
  attribute.maybe("exec_path", row.exec_path);
}

}  // namespace tenon::documents::aitemplate
