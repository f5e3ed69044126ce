#include "base/error.h"
#include "base/text.h"
#include "documents/document.h"
#include "passes/definition/pass.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tenon::quantize_partition_test {
namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Expands the specification's abbreviations. `conv(v, Ck)` is a 1x1 convolution, `Ck` a constant; a
// line may end in `@T` if its type differs from the input's.
std::string statement(std::string line, std::string& type) {
  type = "Tensor[(1, 8, 8, 16), float32]";
  if (const std::size_t at = line.find('@'); at != std::string::npos) {
    type = "Tensor[(" + line.substr(at + 1) + "), float32]";
    line = line.substr(0, at);
  }
  for (int k = 0; k < 4; ++k) {
    const std::string name = "C" + std::to_string(k),
                      meta = concat("meta[relay.Constant][", k, "] /* ty=Tensor[");
    if (line.find("conv(") != std::string::npos) {
      replace_all(line, name + ")",
                  meta +
                      "(1, 1, 16, 16), float32] */, padding=[0, 0, 0, 0], channels=16, "
                      "kernel_size=[1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\")");
    } else {
      replace_all(line, name, meta + "(16), float32] */");
    }
  }
  replace_all(line, "conv(", "nn.conv2d(");
  if (line.find("hint(") != std::string::npos) replace_all(line, ")", ", dtype=\"int8\")");
  replace_all(line, "hint(", "annotation.cast_hint(");
  replace_all(line, "stop(", "annotation.stop_fusion(");
  replace_all(line, "pool(", "nn.max_pool2d(");
  if (line.find("max_pool") != std::string::npos) {
    replace_all(line, ")",
                ", pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout=\"NHWC\")");
  }
  if (line.find("global") != std::string::npos) replace_all(line, ")", ", layout=\"NHWC\")");
  const bool is_tuple = line.find("= (") != std::string::npos;
  return is_tuple ? line : line + " /* ty=" + type + " */";
}

std::string program(const std::string& short_text) {
  std::string lines, type;
  std::vector<std::string> statements = split(short_text, ';');
  for (std::size_t k = 0; k < statements.size(); ++k) {
    lines += "  " + statement(std::string(trim(statements[k])), type) +
             (k + 1 < statements.size() ? ";\n" : "\n");
  }
  return concat("def @main(%x: Tensor[(1, 8, 8, 16), float32]) -> ", type, " {\n", lines, "}\n");
}

std::string partitioned(const std::string& text, const passes::PassOptions& options = {}) {
  const documents::DocumentFormat* relay = documents::find_document_format("relay");
  const Graph graph = relay->read(text, "test")->graph();
  return relay->from_graph(passes::find_pass("quantize-partition").run(graph, options))->text("");
}

struct Case {
  const char *name, *before, *after;
};

class QuantizePartitionCase : public ::testing::TestWithParam<Case> {};

TEST_P(QuantizePartitionCase, MatchesTheSpecification) {
  const std::string before = program(GetParam().before);
  EXPECT_EQ(partitioned(before), program(GetParam().after));
}

constexpr Case kCases[] = {
    {"A_LeftSectionRightPlain",
     "%0 = conv(%x, C0); %1 = add(%0, C1); %2 = nn.relu(%x); add(%1, %2)",
     "%0 = conv(%x, C0); %1 = add(%0, C1); %2 = hint(%1); %3 = stop(%2); %4 = nn.relu(%x); add(%3, "
     "%4)"},
    {"B_LeftPlainRightSection",
     "%0 = nn.relu(%x); %1 = conv(%x, C0); %2 = add(%1, C1); %3 = add(%0, %2); nn.relu(%3)",
     "%0 = conv(%x, C0); %1 = add(%0, C1); %2 = hint(%1); %3 = nn.relu(%x); %4 = stop(%2); %5 = "
     "add(%3, %4); "
     "nn.relu(%5)"},
    {"C_ConstantOnTheLeft", "%0 = conv(%x, C1); %1 = add(C0, %0); nn.relu(%1)",
     "%0 = conv(%x, C1); %1 = hint(%0); %2 = stop(%1); %3 = add(C0, %2); nn.relu(%3)"},
    {"D_Multiply", "%0 = conv(%x, C0); %1 = multiply(%0, C1); %2 = add(%1, C2); nn.relu(%2)",
     "%0 = conv(%x, C0); %1 = hint(%0); %2 = stop(%1); %3 = multiply(%2, C1); %4 = add(%3, C2); %5 "
     "= nn.relu(%4); "
     "%6 = hint(%5); stop(%6)"},
    {"E_Sharing",
     "%0 = conv(%x, C0); %1 = nn.relu(%0); %2 = sigmoid(%1); %3 = tanh(%1); %4 = conv(%1, C1); %5 "
     "= conv(%1, C2); "
     "%6 = add(%2, %3); %7 = add(%4, %5); add(%6, %7)",
     "%0 = conv(%x, C0); %1 = nn.relu(%0); %2 = hint(%1); %3 = stop(%2); %4 = sigmoid(%3); %5 = "
     "tanh(%3); "
     "%6 = hint(%1); %7 = stop(%6); %8 = conv(%7, C1); %9 = hint(%8); %10 = hint(%1); %11 = "
     "stop(%10); "
     "%12 = conv(%11, C2); %13 = hint(%12); %14 = stop(%9); %15 = stop(%13); %16 = add(%14, %15); "
     "%17 = hint(%16); "
     "%18 = add(%4, %5); %19 = stop(%17); add(%18, %19)"},
    {"F1_GlobalPoolOfAPlainValue", "nn.global_avg_pool2d(%x)@1, 1, 1, 16",
     "%0 = hint(%x); %1 = stop(%0); nn.global_avg_pool2d(%1)@1, 1, 1, 16"},
    {"F2_GlobalPoolOfASection",
     "%0 = conv(%x, C0); %1 = nn.relu(%0); nn.global_avg_pool2d(%1)@1, 1, 1, 16",
     "%0 = conv(%x, C0); %1 = nn.relu(%0); %2 = hint(%1); %3 = stop(%2); "
     "nn.global_avg_pool2d(%3)@1, 1, 1, 16"},
    {"G_ClipPoolResult",
     "%0 = conv(%x, C0); %1 = clip(%0, a_min=0f, a_max=6f); pool(%1)@1, 4, 4, 16",
     "%0 = conv(%x, C0); %1 = clip(%0, a_min=0f, a_max=6f); %2 = pool(%1)@1, 4, 4, 16; %3 = "
     "hint(%2)@1, 4, 4, 16; "
     "stop(%3)@1, 4, 4, 16"},
    {"H_Tuple",
     "%0 = conv(%x, C0); %1 = conv(%x, C1); %2 = nn.relu(%1); %3 = (%0, %2, %0); "
     "concatenate(%3, axis=3)@1, 8, 8, 48",
     "%0 = conv(%x, C0); %1 = hint(%0); %2 = conv(%x, C1); %3 = nn.relu(%2); %4 = hint(%3); %5 = "
     "stop(%1); "
     "%6 = stop(%4); %7 = (%5, %6, %5); concatenate(%7, axis=3)@1, 8, 8, 48"},
    {"I_AddToItself", "%0 = conv(%x, C0); add(%0, %0)",
     "%0 = conv(%x, C0); %1 = hint(%0); %2 = hint(%0); %3 = stop(%1); %4 = stop(%2); %5 = add(%3, "
     "%4); "
     "%6 = hint(%5); stop(%6)"},
    {"J_IdentityBlock",
     "%0 = conv(%x, C0); %1 = add(%0, C1); %2 = nn.relu(%1); %3 = conv(%2, C2); %4 = add(%3, C3); "
     "%5 = add(%4, %2); "
     "nn.relu(%5)",
     "%0 = conv(%x, C0); %1 = add(%0, C1); %2 = nn.relu(%1); %3 = hint(%2); %4 = stop(%3); %5 = "
     "conv(%4, C2); "
     "%6 = add(%5, C3); %7 = hint(%6); %8 = hint(%2); %9 = stop(%7); %10 = stop(%8); %11 = add(%9, "
     "%10); "
     "%12 = nn.relu(%11); %13 = hint(%12); stop(%13)"},
};

INSTANTIATE_TEST_SUITE_P(Spec, QuantizePartitionCase, ::testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(QuantizePartition, ResNetMatchesTheDocument) {
  EXPECT_EQ(partitioned(read_fixture("resnet50_v1.before.relay")),
            read_fixture("resnet50_v1.after.relay"));
}

TEST(QuantizePartition, SharingSavesLines) {
  passes::PassOptions options;
  passes::set_option(options, "quantize-partition.share=true");
  const std::string text = partitioned(read_fixture("resnet50_v1.before.relay"), options);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 327);
}

TEST(QuantizePartition, OutputsCanStayOpen) {
  passes::PassOptions options;
  passes::set_option(options, "quantize-partition.close-outputs=false");
  EXPECT_EQ(partitioned(program("%0 = conv(%x, C0); nn.relu(%0)"), options),
            program("%0 = conv(%x, C0); nn.relu(%0)"));
}

TEST(QuantizePartition, SectionInTheRightOperand) {
  const std::string before = program("%0 = conv(%x, C0); %1 = sigmoid(%x); multiply(%1, %0)");
  passes::PassOptions options;
  passes::set_option(options, "quantize-partition.multiply-right=true");
  EXPECT_EQ(partitioned(before, options),
            program("%0 = conv(%x, C0); %1 = hint(%0); %2 = sigmoid(%x); %3 = stop(%1); %4 = "
                    "multiply(%2, %3); "
                    "%5 = hint(%4); stop(%5)"));
}

// The left operand's section is closed; the right one is read unchanged.
TEST(QuantizePartition, ClosesTheLeftOperand) {
  EXPECT_EQ(partitioned(program("%0 = conv(%x, C0); %1 = conv(%x, C1); multiply(%0, %1)")),
            program("%0 = conv(%x, C0); %1 = hint(%0); %2 = stop(%1); %3 = conv(%x, C1); %4 = "
                    "multiply(%2, %3); "
                    "%5 = hint(%4); stop(%5)"));
}

void expect_refused(const std::string& text, const std::string& part) {
  try {
    partitioned(text);
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(QuantizePartition, RefusesUnsupportedPatterns) {
  expect_refused(program("%0 = conv(%x, C0); %1 = sigmoid(%x); multiply(%1, %0)"),
                 "a product has its 8-bit section on the right");
  expect_refused(
      "def @main(%x: Tensor[(1, 4, 4, 4), float32], %w: Tensor[(4, 4, 1, 1), float32]) {\n"
      "  %0 = nn.conv2d(%x, %w, kernel_size=[1, 1], channels=4);\n"
      "  %1 = nn.conv2d(%w, meta[relay.Constant][0] /* ty=Tensor[(4, 4, 1, 1), float32] */);\n"
      "  nn.conv2d(%0, %1)\n}\n",
      "a convolution's weight comes out of an 8-bit section");
}

TEST(QuantizePartition, OptionNames) {
  passes::PassOptions options;
  const auto message = [&](const char* text) {
    return error_text([&] { passes::set_option(options, text); });
  };
  EXPECT_NE(
      message("quantize-partition.shares=true").find("did you mean 'quantize-partition.share'"),
      std::string::npos);
  EXPECT_NE(message("quantize-partition.share=yes").find("true or false"), std::string::npos);
  EXPECT_NE(message("quantize-partition.share").find("PASS.OPTION=VALUE"), std::string::npos);
  EXPECT_EQ(message("quantize-partition.dtype=i4"), "no error");
  EXPECT_EQ(options.quantize_partition.dtype, DType::I4);
}

// Relay does not have a rule for nn.bias_add in a section: the bias of a convolution is an add
// there.
TEST(QuantizePartition, BiasIsAnAdd) {
  const std::string before =
      program("%0 = conv(%x, C0); %1 = nn.bias_add(%0, C1, axis=3); %2 = nn.relu(%1); sigmoid(%2)");
  const std::string after = partitioned(before);
  EXPECT_EQ(after.find("nn.bias_add"), std::string::npos) << after;
  EXPECT_NE(after.find("add(%0, meta[relay.Constant][1]"), std::string::npos) << after;
}

}  // namespace
}  // namespace tenon::quantize_partition_test
