#include "base/error.h"
#include "documents/document.h"
#include "ir/text.h"
#include "reference/evaluate.h"
#include "unit/documents/megengine_profile.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon::megengine_import_test {
namespace {

Graph graph_of(const MegengineProfile& profile) {
  return documents::find_document_format("megengine")->read(profile.text(), "profile")->graph();
}

std::vector<double> run(const MegengineProfile& profile, const std::vector<Tensor>& inputs) {
  std::vector<Datum> data;
  for (const Tensor& input : inputs) data.emplace_back(input);
  return reference::evaluate(graph_of(profile), std::move(data)).front().tensor().reals();
}

Tensor tensor(Shape shape, const std::vector<double>& values) {
  return Tensor::of(DType::F32, std::move(shape), values);
}

Tensor counted(Shape shape) {
  Tensor result(DType::F32, std::move(shape));
  for (std::int64_t k = 0; k < result.size(); ++k) result.set_real(k, static_cast<double>(k));
  return result;
}

struct Mode {
  const char* name;
  std::size_t operand_count;
  double (*expected)(double a, double b, double c, double d);
};

class MegengineElemwise : public ::testing::TestWithParam<Mode> {};

TEST_P(MegengineElemwise, MatchesMegengine) {
  const Mode& mode = GetParam();
  MegengineProfile profile;
  const std::vector<std::vector<double>> values = {{0.3, -0.7, 0.9, -2.5, 2.5},
                                                   {1.5, 0.25, -0.5, 2, 3.5},
                                                   {-1, 2, 0.5, 0.1, 4},
                                                   {2, -3, 1, 0.5, -0.25}};
  MegengineProfile::Ids operands;
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < mode.operand_count; ++k) {
    operands.push_back(profile.input("[5]"));
    inputs.push_back(tensor({5}, values[k]));
  }
  profile.add("Elemwise", operands, "[5]", std::string("{\"mode\": \"") + mode.name + "\"}");
  const std::vector<double> results = run(profile, inputs);
  for (std::size_t k = 0; k < 5; ++k) {
    const double expected = mode.expected(values[0][k], values[1][k], values[2][k], values[3][k]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(results[k])) << mode.name << " of element " << k << ": " << results[k];
    } else {
      EXPECT_NEAR(results[k], expected, 1e-5 * (1 + std::fabs(expected)))
          << mode.name << " of element " << k;
    }
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hard_swish(double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }

const Mode kModes[] = {
    {"RELU", 1, [](double a, double, double, double) { return std::fmax(a, 0); }},
    {"NEGATE", 1, [](double a, double, double, double) { return -a; }},
    {"EXPM1", 1, [](double a, double, double, double) { return std::expm1(a); }},
    {"LOG1P", 1, [](double a, double, double, double) { return std::log1p(a); }},
    {"ROUND", 1, [](double a, double, double, double) { return std::round(a); }},
    {"ERFC", 1, [](double a, double, double, double) { return std::erfc(a); }},
    {"H_SWISH", 1, [](double a, double, double, double) { return hard_swish(a); }},
    {"SILU", 1, [](double a, double, double, double) { return a * sigmoid(a); }},
    {"GELU", 1,
     [](double a, double, double, double) { return a * 0.5 * std::erfc(-a / std::sqrt(2.0)); }},
    {"FAST_TANH", 1,
     [](double a, double, double, double) { return a * (27 + a * a) / (27 + 9 * a * a); }},
    {"RELU6", 1, [](double a, double, double, double) { return std::fmin(std::fmax(a, 0), 6); }},
    {"HSIGMOID", 1,
     [](double a, double, double, double) { return std::fmin(std::fmax(a + 3, 0), 6) / 6; }},
    {"LOGSIGMOID", 1, [](double a, double, double, double) { return std::log(sigmoid(a)); }},
    {"SQUARE", 1, [](double a, double, double, double) { return a * a; }},
    {"SUB", 2, [](double a, double b, double, double) { return a - b; }},
    {"TRUE_DIV", 2, [](double a, double b, double, double) { return a / b; }},
    {"FLOOR_DIV", 2, [](double a, double b, double, double) { return std::floor(a / b); }},
    {"MOD", 2, [](double a, double b, double, double) { return std::fmod(a, b); }},
    {"MAX", 2, [](double a, double b, double, double) { return std::fmax(a, b); }},
    {"ABS_GRAD", 2, [](double a, double b, double, double) { return a > 0 ? b : -b; }},
    {"SIGMOID_GRAD", 2, [](double a, double b, double, double) { return a * (1 - a) * b; }},
    {"SWITCH_GT0", 2, [](double a, double b, double, double) { return a > 0 ? b : 0; }},
    {"TANH_GRAD", 2, [](double a, double b, double, double) { return (1 - a * a) * b; }},
    {"LOG_SUM_EXP", 2,
     [](double a, double b, double, double) { return std::log(std::exp(a) + std::exp(b)); }},
    {"LT", 2, [](double a, double b, double, double) { return a < b ? 1.0 : 0.0; }},
    {"NEQ", 2, [](double a, double b, double, double) { return a != b ? 1.0 : 0.0; }},
    {"H_SWISH_GRAD", 2,
     [](double a, double b, double, double) {
       return a < -3 ? 0 : a > 3 ? b : (2 * a + 3) / 6 * b;
     }},
    {"SILU_GRAD", 2,
     [](double a, double b, double, double) {
       return sigmoid(a) * (1 + a * (1 - sigmoid(a))) * b;
     }},
    {"SOFTPLUS_GRAD", 2, [](double a, double b, double, double) { return sigmoid(a) * b; }},
    {"FUSE_ADD_RELU", 2, [](double a, double b, double, double) { return std::fmax(a + b, 0); }},
    {"FUSE_ADD_SIGMOID", 2, [](double a, double b, double, double) { return sigmoid(a + b); }},
    {"FUSE_ADD_TANH", 2, [](double a, double b, double, double) { return std::tanh(a + b); }},
    {"FUSE_ADD_H_SWISH", 2, [](double a, double b, double, double) { return hard_swish(a + b); }},
    {"COND_LEQ_MOV", 3, [](double a, double b, double c, double) { return a <= b ? c : 0; }},
    {"COND_LT_MOV", 3, [](double a, double b, double c, double) { return a < b ? c : 0; }},
    {"FUSE_MUL_ADD3", 3, [](double a, double b, double c, double) { return a * b + c; }},
    {"FUSE_MUL_ADD4", 4, [](double a, double b, double c, double d) { return a * b + c * d; }},
};

INSTANTIATE_TEST_SUITE_P(Modes, MegengineElemwise, ::testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

// One operator each, identified by its numbers.
struct ShapeCase {
  const char* name;
  const char* type;
  const char* param;
  Shape in;
  const char* out;
  std::vector<double> expected;
};
class MegengineShapes : public ::testing::TestWithParam<ShapeCase> {};

TEST_P(MegengineShapes, MovementMatchesMegengine) {
  const ShapeCase& test = GetParam();
  std::string shape = "[";
  for (std::size_t k = 0; k < test.in.size(); ++k)
    shape += (k == 0 ? "" : ", ") + std::to_string(test.in[k]);
  MegengineProfile profile;
  const std::int64_t x = profile.input(shape + "]");
  profile.add(test.type, {x}, test.out, test.param);
  EXPECT_EQ(run(profile, {counted(test.in)}), test.expected);
}

INSTANTIATE_TEST_SUITE_P(
    Types, MegengineShapes,
    ::testing::Values(
        ShapeCase{"Dimshuffle",
                  "Dimshuffle",
                  R"({"ndim": 2, "pattern": [1, 0]})",
                  {2, 3},
                  "[3, 2]",
                  {0, 3, 1, 4, 2, 5}},
        ShapeCase{"DimshuffleAdds",
                  "Dimshuffle",
                  R"({"ndim": 2, "pattern": [1, -1, 0]})",
                  {2, 2},
                  "[2, 1, 2]",
                  {0, 2, 1, 3}},
        ShapeCase{"AxisAdded",
                  "AxisAddRemove",
                  R"({"nr_desc": 1, "desc": [{"method": 0, "axisnum": 1}]})",
                  {3},
                  "[3, 1]",
                  {0, 1, 2}},
        ShapeCase{
            "AxesRemoved",
            "AxisAddRemove",
            R"({"nr_desc": 2, "desc": [{"method": 1, "axisnum": 2}, {"method": 1, "axisnum": 0}]})",
            {1, 3, 1},
            "[3]",
            {0, 1, 2}},
        ShapeCase{"ReduceSum",
                  "Reduce",
                  R"({"mode": "SUM", "axis": 1, "data_type": "DEFAULT"})",
                  {2, 3},
                  "[2, 1]",
                  {3, 12}},
        ShapeCase{"ReduceMean",
                  "Reduce",
                  R"({"mode": "MEAN", "axis": 0})",
                  {2, 3},
                  "[1, 3]",
                  {1.5, 2.5, 3.5}},
        ShapeCase{"ReduceSumOfSquares",
                  "Reduce",
                  R"({"mode": "SUM_SQR", "axis": 0})",
                  {3, 1},
                  "[1, 1]",
                  {5}},
        ShapeCase{"ReduceToOne", "Reduce", R"({"mode": "MAX"})", {2, 3}, "[1]", {5}},
        ShapeCase{
            "MaxPooling",
            "PoolingForward",
            R"({"mode": "MAX", "window_h": 2, "window_w": 2, "stride_h": 2, "stride_w": 2, "pad_h": 0, "pad_w": 0})",
            {1, 1, 2, 4},
            "[1, 1, 1, 2]",
            {5, 7}},
        ShapeCase{
            "AverageWithPadding",
            "PoolingForward",
            R"({"mode": "AVERAGE", "window_h": 2, "window_w": 2, "stride_h": 2, "stride_w": 2, "pad_h": 1, "pad_w": 1})",
            {1, 1, 1, 2},
            "[1, 1, 1, 2]",
            {0, 0.25}},
        ShapeCase{
            "AverageWithoutPadding",
            "PoolingForward",
            R"({"mode": "AVERAGE_COUNT_EXCLUDE_PADDING", "window_h": 2, "window_w": 2, "stride_h": 2, "stride_w": 2, "pad_h": 1, "pad_w": 1})",
            {1, 1, 1, 2},
            "[1, 1, 1, 2]",
            {0, 1}},
        ShapeCase{
            "PoolingOfChannelsLast",
            "PoolingForward",
            R"({"mode": "MAX", "format": "NHWC", "window_h": 2, "window_w": 1, "stride_h": 2, "stride_w": 1})",
            {1, 2, 1, 2},
            "[1, 1, 1, 2]",
            {2, 3}},
        ShapeCase{"Softmax",
                  "Softmax",
                  R"({"axis": 0})",
                  {2, 1},
                  "[2, 1]",
                  {0.26894143223762512, 0.73105859756469727}},
        ShapeCase{"Power", "PowC", R"({"exp": 2})", {3}, "[3]", {0, 1, 4}},
        ShapeCase{"Copy", "Copy", "{ }", {2}, "[2]", {0, 1}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(MegengineImport, ReadsTransposedGemms) {
  MegengineProfile profile;
  const std::int64_t a = profile.input("[2, 1]"), b = profile.input("[3, 2]");
  profile.add("MatrixMul", {a, b}, "[1, 3]", R"({"transposeA": true, "transposeB": true})");
  EXPECT_EQ(run(profile, {tensor({2, 1}, {1, 10}), counted({3, 2})}),
            (std::vector<double>{10, 32, 54}));
}

TEST(MegengineImport, ReadsGroupedConvolutionsWithEpilogue) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[1, 2, 1, 2]"), w = profile.input("[2, 1, 1, 1, 2]"),
                     b = profile.input("[1, 2, 1, 1]"), z = profile.input("[1, 2, 1, 1]");
  profile.add(
      "ConvBiasForward", {x, w, b, z}, "[1, 2, 1, 1]",
      R"({"sparse": "GROUP", "format": "NCHW", "mode": "CROSS_CORRELATION", "nonlineMode": "RELU",
                  "stride_h": 1, "stride_w": 1, "pad_h": 0, "pad_w": 0, "dilate_h": 1, "dilate_w": 1})");
  EXPECT_EQ(
      run(profile, {tensor({1, 2, 1, 2}, {1, 2, 3, 4}), tensor({2, 1, 1, 1, 2}, {1, 1, -1, -1}),
                    tensor({1, 2, 1, 1}, {0.5, 0.5}), tensor({1, 2, 1, 1}, {10, 1})}),
      (std::vector<double>{13.5, 0}));
}

TEST(MegengineImport, ReadsGradientsOfConvolutions) {
  const std::string window =
      R"({"stride_h": 2, "stride_w": 2, "pad_h": 0, "pad_w": 0, "dilate_h": 1, "dilate_w": 1, "sparse": "DENSE"})";
  MegengineProfile data;
  const std::int64_t w = data.input("[1, 1, 2, 2]"), diff = data.input("[1, 1, 1, 2]");
  data.add("ConvolutionBackwardData", {w, diff}, "[1, 1, 2, 5]",
           window);  // one column outside all windows
  EXPECT_EQ(run(data, {tensor({1, 1, 2, 2}, {1, 2, 3, 4}), tensor({1, 1, 1, 2}, {1, 10})}),
            (std::vector<double>{1, 2, 10, 20, 0, 3, 4, 30, 40, 0}));
  MegengineProfile filter;
  const std::int64_t x = filter.input("[1, 1, 2, 4]"), dy = filter.input("[1, 1, 1, 2]"),
                     shape = filter.input("[1, 1, 2, 2]");
  filter.add("ConvolutionBackwardFilter", {x, dy, shape}, "[1, 1, 2, 2]", window);
  EXPECT_EQ(
      run(filter, {counted({1, 1, 2, 4}), tensor({1, 1, 1, 2}, {1, 10}), counted({1, 1, 2, 2})}),
      (std::vector<double>{20, 31, 64, 75}));
}

TEST(MegengineImport, OutputsAreTheDocumentsTargets) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[2, 3]");
  const std::int64_t target = profile.host("[2]", "[3, -1]");
  const std::int64_t flat = profile.add("Reshape", {x, target}, "[3, 2]", R"({"axis": 1})");
  const std::int64_t begin = profile.host("[1]", "[1]");
  const std::int64_t row =
      profile.add("Subtensor", {flat, begin}, "[2]",
                  R"([{"axis": 0, "begin": 0, "end": 0, "step": 0, "idx": 1}])");
  const std::int64_t wide = profile.host("[2]", "[2, 2]");
  const std::int64_t grown = profile.add("Broadcast", {row, wide}, "[2, 2]");
  profile.add("Concat", {grown, grown}, "[2, 4]", R"({"axis": 1})");
  EXPECT_EQ(run(profile, {counted({2, 3})}), (std::vector<double>{2, 3, 2, 3, 2, 3, 2, 3}));
}

TEST(MegengineImport, ReadsSlices) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[6, 2]");
  const std::int64_t begin = profile.host("[1]", "[1]"), end = profile.host("[1]", "[-1]"),
                     step = profile.host("[1]", "[2]"), last = profile.host("[1]", "[-1]");
  profile.add(
      "Subtensor", {x, begin, end, step, last}, "[2]",
      R"([{"axis": 0, "begin": 1, "end": 1, "step": 1, "idx": 0}, {"axis": -1, "begin": 0, "end": 0, "step": 0, "idx": 1}])");
  EXPECT_EQ(run(profile, {counted({6, 2})}), (std::vector<double>{3, 7}));
}

TEST(MegengineImport, InfersTheModeFromTheName) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[2]"), y = profile.input("[2]");
  profile.add("Elemwise", {x, y}, "", "", "SUB(x0,x2)[4]");
  EXPECT_EQ(run(profile, {tensor({2}, {5, 6}), tensor({2}, {1, 4})}), (std::vector<double>{4, 2}));
}

TEST(MegengineImport, ReadsUpdatesAndNormalizations) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[1, 1, 1, 2]"), delta = profile.input("[1, 1, 1, 2]");
  const std::int64_t sum = profile.add("AddUpdate", {x, delta}, "[1, 1, 1, 2]",
                                       R"({"alpha": 2, "beta": -1, "bias": 0.5})");
  MegengineProfile::Ids operands = {sum};
  for (int k = 0; k < 4; ++k) operands.push_back(profile.input("[1, 1, 1, 1]"));
  profile.add("BatchNorm", operands, "[1, 1, 1, 2]", R"({"fwd_mode": "INFERENCE", "epsilon": 1})");
  const auto one = [](double value) { return tensor({1, 1, 1, 1}, {value}); };
  EXPECT_EQ(run(profile, {tensor({1, 1, 1, 2}, {1, 2}), tensor({1, 1, 1, 2}, {1, 1}), one(4),
                          one(10), one(0.5), one(3)}),
            (std::vector<double>{12, 16}));
}

TEST(MegengineImport, ListsAllUnsupportedOperators) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[1, 4, 2, 2]");
  const std::int64_t a = profile.add("ROIPooling", {x}, "[1, 4, 1, 1]");
  const std::int64_t b = profile.add("ROIPooling", {a}, "[1, 4, 1, 1]");
  const std::int64_t c = profile.add("Elemwise", {b}, "[1, 4, 1, 1]", R"({"mode": "ERFINV"})");
  profile.add("PoolingForward", {c}, "[1, 4, 1, 1]",
              R"({"format": "NCHW4", "window_h": 1, "window_w": 1, "mode": "MAX"})");
  try {
    graph_of(profile);
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    const std::string text = error.what();
    for (const char* part : {"3 things", "ROIPooling", "2 operators", "ERFINV", "NCHW4"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
    }
  }
}

TEST(MegengineImport, NamesTheInconsistentOperator) {
  MegengineProfile profile;
  const std::int64_t x = profile.input("[2, 3]"), y = profile.input("[4, 5]");
  profile.add("MatrixMul", {x, y}, "[2, 5]");
  try {
    graph_of(profile);
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("$.graph_exec.operator.4 (MatrixMul)"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon::megengine_import_test
