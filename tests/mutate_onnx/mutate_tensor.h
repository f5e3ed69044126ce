#pragma once

#include "testing/random.h"

#include <cstdint>
#include <string>
#include <vector>

namespace onnx_schema {
class TensorProto;
}

namespace tenon::testing {

/// Returns a random element type of ONNX, common ones more often.
int any_element_type(testing::Random& random);

/// Gives a tensor these extents and random elements, small enough to count or to index with.
void fill_tensor(onnx_schema::TensorProto& tensor, int element_type,
                 const std::vector<std::int64_t>& dims, testing::Random& random);
/// Changes extents of one value, and the number of elements with them.
void resize_tensor(onnx_schema::TensorProto& tensor, std::int64_t was, std::int64_t now,
                   testing::Random& random);
/// Keeps the extents and replaces the elements by some of another type.
void retype_tensor(onnx_schema::TensorProto& tensor, int element_type, testing::Random& random);
/// Changes a tensor's extents, elements, type or number of bytes; returns a description.
std::string mutate_tensor(onnx_schema::TensorProto& tensor, testing::Random& random);

}  // namespace tenon::testing
