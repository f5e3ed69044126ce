// Random windowed ops and matrix products: odd kernels, strides, dilations and groups, transposed
// and broadcast operands.
#include "base/error.h"
#include "testing/random_graph/graph_maker.h"

#include <algorithm>

namespace tenon::testing {
namespace {

using Integers = Attr::Integers;

class Contractions {
 public:
  explicit Contractions(GraphMaker& maker)
      : maker_(maker), random_(maker.random), build_(maker.build()) {}

  void add_one() {
    switch (random_.below(4)) {
      case 0:
        product();
        break;
      case 1:
        pool();
        break;
      default:
        convolution();
    }
  }

  // Large enough for algorithms that only pay off at that size.
  void wide_convolution() {
    const std::int64_t channels = random_.between(32, 36), outputs = random_.between(32, 49);
    const std::int64_t height = random_.between(9, 15), width = random_.between(9, 15);
    const DType dtype = random_.chance(85) ? DType::F32 : maker_.any_float();
    TensorType type{dtype, {random_.between(1, 2), channels, height, width}, {}};
    const bool is_last = random_.chance(70);
    if (is_last) {
      std::rotate(type.dims.begin() + 1, type.dims.begin() + 2, type.dims.end());
      type.layout = Layout("NHWC");
    }
    const Var x = var(maker_.new_input(type));
    Integers pads;
    for (int k = 0; k < 4; ++k) pads.push_back(random_.between(0, 2));
    Var y =
        call("conv", {x, constant(dtype, {outputs, channels, 3, 3}), constant(dtype, {outputs})},
             {{"pads", pads}});
    if (random_.chance(60)) y = activation(y);
    if (random_.chance(30)) y = call("add", {y, call("tanh", {y})});
    if (random_.chance(30)) {
      y = call("conv", {y, constant(dtype, {outputs, outputs, 1, 1})});
      if (random_.chance(50)) activation(y);
    }
  }

 private:
  Var var(ValueId value) { return Var(&build_, value.index()); }
  const TensorType& type(Var value) { return *maker_.tensor_type(ValueId(value.id())); }
  Var call(std::string_view op, const std::vector<Var>& operands,
           const std::vector<Attr>& attrs = {}) {
    return build_.call(op, operands, attrs);
  }
  Var constant(DType dtype, const Dims& dims) { return var(maker_.constant_of(dtype, dims)); }
  Var activation(Var x) {
    static const std::vector<std::string> ops = {"relu", "sigmoid", "tanh", "gelu", "neg"};
    return call(random_.pick(ops), {x});
  }
  Integers numbers(std::size_t count, std::int64_t low, std::int64_t high) {
    Integers list(count);
    for (std::int64_t& number : list) number = random_.between(low, high);
    return list;
  }

  struct RandomWindow {
    Dims extents;  // of the image
    Integers kernel;
    std::vector<Attr> attrs;
  };
  RandomWindow window(std::size_t rank) {
    RandomWindow made;
    made.kernel = numbers(rank, 1, rank == 1 ? 5 : 3);
    const Integers strides = numbers(rank, 1, 3);
    const Integers dilations = random_.chance(50) ? Integers(rank, 1) : numbers(rank, 1, 2);
    Integers pads(2 * rank);
    for (std::size_t k = 0; k < 2 * rank; ++k)
      pads[k] = random_.between(0, made.kernel[k % rank] - 1);
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t reach = (made.kernel[k] - 1) * dilations[k] + 1;
      made.extents.push_back(reach + random_.between(0, rank > 2 ? 2 : 5));
    }
    if (random_.chance(60)) made.attrs.emplace_back("strides", strides);
    made.attrs.emplace_back("dilations", dilations);
    if (random_.chance(60)) made.attrs.emplace_back("pads", pads);
    return made;
  }

  void pool() {
    const std::size_t rank = 1 + random_.below(3);
    RandomWindow w = window(rank);
    Dims dims = {maker_.any_extent(), Dim(random_.between(1, 3))};
    dims.insert(dims.end(), w.extents.begin(), w.extents.end());
    const Var x = var(maker_.value_of(maker_.any_float(), dims));
    w.attrs.emplace_back("kernel_shape", w.kernel);
    if (random_.chance(50)) w.attrs.emplace_back("ceil_mode", true);
    static const std::vector<std::string> ops = {"max_pool", "average_pool", "lp_pool"};
    const std::string& op = random_.pick(ops);
    if (op == "average_pool" && random_.chance(50)) w.attrs.emplace_back("count_include_pad", true);
    const Var y = call(op, {x}, w.attrs);
    if (random_.chance(30)) activation(y);
  }

  void convolution() {
    const std::size_t rank = random_.chance(70) ? 2 : 1 + 2 * random_.below(2);
    RandomWindow w = window(rank);
    const std::int64_t groups = random_.chance(60) ? 1 : random_.between(2, 4);
    const std::int64_t channels = groups * random_.between(1, groups > 1 ? 2 : 5);
    const std::int64_t outputs = groups * random_.between(1, groups > 1 ? 3 : 9);
    const DType dtype = maker_.any_float();
    Dims dims = {maker_.any_extent(), Dim(channels)};
    dims.insert(dims.end(), w.extents.begin(), w.extents.end());
    const bool is_transposed = random_.chance(20);
    Dims weights = is_transposed ? Dims{Dim(channels), Dim(outputs / groups)}
                                 : Dims{Dim(outputs), Dim(channels / groups)};
    for (const std::int64_t extent : w.kernel) weights.push_back(extent);
    const Var x = var(maker_.value_of(dtype, dims));
    std::vector<Var> operands = {
        x, random_.chance(75) ? constant(dtype, weights) : var(maker_.value_of(dtype, weights))};
    if (random_.chance(50)) operands.push_back(constant(dtype, {outputs}));
    w.attrs.emplace_back("groups", groups);
    Var y = call(is_transposed ? "conv_transpose" : "conv", operands, w.attrs);
    if (random_.chance(50)) y = activation(y);
    if (random_.chance(30)) call("add", {y, var(maker_.value_of(dtype, type(y).dims))});
  }

  // An operand may have its last two axes swapped, and may lack batch axes.
  Var operand(DType dtype, const Dims& batch, const Dim& rows, const Dim& columns) {
    Dims dims = batch;
    if (random_.chance(30)) {
      dims.erase(dims.begin(),
                 dims.begin() + static_cast<std::ptrdiff_t>(random_.below(dims.size() + 1)));
    }
    for (Dim& dim : dims) {
      if (random_.chance(20)) dim = 1;
    }
    const bool swaps = random_.chance(40);
    dims.push_back(swaps ? columns : rows);
    dims.push_back(swaps ? rows : columns);
    const Var x = random_.chance(30) && all_constant(dims) ? constant(dtype, dims)
                                                           : var(maker_.value_of(dtype, dims));
    if (!swaps) return x;
    Integers perm;
    for (std::size_t k = 0; k < dims.size(); ++k) perm.push_back(static_cast<std::int64_t>(k));
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return call("transpose", {x}, {{"perm", perm}});
  }

  void product() {
    static const std::vector<DType> integers = {DType::I32, DType::I64, DType::U32, DType::U64};
    const DType dtype = random_.chance(85) ? maker_.any_float() : random_.pick(integers);
    Dims batch(random_.below(3));
    for (Dim& dim : batch) dim = maker_.any_extent();
    const Dim rows = maker_.any_extent(), inner = maker_.any_extent();
    const Dim columns = random_.chance(60) ? maker_.any_extent() : Dim(random_.between(5, 19));
    const Var a = operand(dtype, batch, rows, inner), b = operand(dtype, batch, inner, columns);
    Var y = call("matmul", {a, b});
    if (random_.chance(40)) y = call("add", {y, var(maker_.value_of(dtype, {columns}))});
    if (random_.chance(40)) y = activation(y);
    if (random_.chance(20)) call("softmax", {y}, {{"axis", -1}});
  }

  GraphMaker& maker_;
  Random& random_;
  Builder& build_;
};

}  // namespace

void add_contraction(GraphMaker& maker) { Contractions(maker).add_one(); }
void add_wide_convolution(GraphMaker& maker) { Contractions(maker).wide_convolution(); }

}  // namespace tenon::testing
