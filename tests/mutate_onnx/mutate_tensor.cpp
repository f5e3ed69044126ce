#include "mutate_tensor.h"

#include "base/error.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"
#include "testing/verify/trial_inputs.h"

#include <algorithm>
#include <limits>

namespace tenon::testing {
namespace {

using onnx_schema::TensorProto;

constexpr std::int64_t kMaxElements = 1 << 16;

std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0 || extent > kMaxElements || count > kMaxElements) return -1;
    count *= extent;
  }
  return count;
}

std::vector<std::int64_t> dims_of(const TensorProto& tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

}  // namespace

int any_element_type(testing::Random& random) {
  const std::vector<int> common{1, 1, 1, 6, 7, 7, 9, 10, 11};
  return random.chance(60) ? random.pick(common) : static_cast<int>(random.between(1, 23));
}

void fill_tensor(TensorProto& proto, int element_type, const std::vector<std::int64_t>& dims,
                 testing::Random& random) {
  const auto dtype = frontends::onnx::dtype_of(element_type);
  const std::int64_t count = count_of(dims);
  if (!dtype || count < 0 || count > kMaxElements) {
    proto.set_data_type(element_type);
    proto.mutable_dims()->Assign(dims.begin(), dims.end());
    return;
  }
  const std::vector<testing::TrialKind> kinds{testing::TrialKind::Ordinary,
                                              testing::TrialKind::Ordinary,
                                              testing::TrialKind::Quiet, testing::TrialKind::Edges};
  const testing::TrialKind kind = random.pick(kinds);
  const std::string name = proto.name();
  proto.Clear();
  proto.set_name(name);
  frontends::onnx::write_tensor(
      testing::trial_tensor(*dtype, dims, {testing::TrialKind::Ordinary, kind, random.next()}),
      proto);
}

void resize_tensor(TensorProto& proto, std::int64_t was, std::int64_t now,
                   testing::Random& random) {
  std::vector<std::int64_t> dims = dims_of(proto);
  if (std::ranges::find(dims, was) == dims.end() || was < 2) return;
  std::ranges::replace(dims, was, now);
  fill_tensor(proto, proto.data_type(), dims, random);
}

void retype_tensor(TensorProto& proto, int element_type, testing::Random& random) {
  fill_tensor(proto, element_type, dims_of(proto), random);
}

std::string mutate_tensor(TensorProto& proto, testing::Random& random) {
  std::vector<std::int64_t> dims = dims_of(proto);
  switch (random.below(7)) {
    case 0:
      if (dims.empty()) break;
      dims[random.below(dims.size())] = random.between(0, 5);
      fill_tensor(proto, proto.data_type(), dims, random);
      return "another extent";
    case 1:
      if (!dims.empty() && random.chance(50)) {
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(random.below(dims.size())));
      } else {
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(random.below(dims.size() + 1)),
                    random.between(1, 2));
      }
      fill_tensor(proto, proto.data_type(), dims, random);
      return "another rank";
    case 2:
      retype_tensor(proto, any_element_type(random), random);
      return concat("element type ", proto.data_type());
    case 3:  // shape and data disagree
      proto.add_dims(random.chance(50) ? std::numeric_limits<std::int64_t>::max()
                                       : random.between(-1, 3));
      return "an extent more than it has elements for";
    case 4:
      if (proto.raw_data().empty()) break;
      proto.mutable_raw_data()->resize(proto.raw_data().size() - 1 -
                                       random.below(proto.raw_data().size()));
      return "fewer bytes";
    case 5: {
      const std::int64_t value = random.between(-4, 5);
      if (proto.int64_data_size() > 0) {
        proto.set_int64_data(
            static_cast<int>(random.below(static_cast<std::size_t>(proto.int64_data_size()))),
            value);
        return concat("an element becomes ", value);
      }
      if (proto.data_type() == TensorProto::INT64 && proto.raw_data().size() >= 8) {
        const std::size_t at = random.below(proto.raw_data().size() / 8) * 8;
        for (std::size_t k = 0; k < 8; ++k) {
          (*proto.mutable_raw_data())[at + k] =
              static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * k));
        }
        return concat("an element becomes ", value);
      }
      break;
    }
    default:
      break;
  }
  fill_tensor(proto, proto.data_type(), dims, random);
  return "other elements";
}

}  // namespace tenon::testing
