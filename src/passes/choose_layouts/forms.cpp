#include "passes/choose_layouts/forms.h"

#include <algorithm>

namespace tenon::passes::layouts {

Forms::Forms(std::string_view to) : has_bare_images_(to != "NCHW") {
  constexpr std::array<std::string_view, 3> first = {"NCW", "NCHW", "NCDHW"};
  constexpr std::array<std::string_view, 3> last = {"NWC", "NHWC", "NDHWC"};
  for (std::size_t k = 0; k < pairs_.size(); ++k) {
    Pair& pair = pairs_[k];
    pair.from = Layout(std::string(has_bare_images_ ? first[k] : last[k]));
    pair.to = Layout(std::string(has_bare_images_ ? last[k] : first[k]));
    for (char letter : pair.to.text()) {
      pair.perm.push_back(static_cast<std::int64_t>(*pair.from.axis(letter)));
    }
    for (char letter : pair.from.text()) {
      pair.back.push_back(static_cast<std::int64_t>(*pair.to.axis(letter)));
    }
  }
}

std::string_view Forms::words() const {
  return has_bare_images_ ? "channels last" : "channels first";
}

bool Forms::may_be_from(const TensorType& type) const {
  return has_rank(type.rank()) && (type.layout.is_empty() || type.layout == from(type.rank()));
}

TensorType Forms::moved(const TensorType& type) const {
  return {type.dtype, permuted(type.dims, perm(type.rank())), to(type.rank())};
}

Dims permuted(const Dims& dims, const Axes& perm) {
  Dims result;
  for (const std::int64_t axis : perm) result.push_back(dims[static_cast<std::size_t>(axis)]);
  return result;
}

bool keeps_elements_in_place(const Dims& dims, const Axes& perm) {
  Axes wide = perm;
  std::erase_if(wide,
                [&](std::int64_t axis) { return dims[static_cast<std::size_t>(axis)] == Dim(1); });
  return std::is_sorted(wide.begin(), wide.end());
}

Dims widened(const Dims& dims, std::size_t rank) {
  Dims result(rank - dims.size(), 1);
  result.insert(result.end(), dims.begin(), dims.end());
  return result;
}

Dims to_dims(const Axes& axes) { return Dims(axes.begin(), axes.end()); }

}  // namespace tenon::passes::layouts
