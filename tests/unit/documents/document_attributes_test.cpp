// Attributes that an operator of a format lacks.
#include "documents/document.h"
#include "unit/documents/mutation.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

struct Misspelt {
  const char *format, *fixture, *from, *to, *says;
};

class DocumentAttributes : public ::testing::TestWithParam<Misspelt> {};

TEST_P(DocumentAttributes, UnknownOnesAreRefused) {
  const Misspelt& param = GetParam();
  std::string text = read_fixture(param.fixture);
  const std::size_t at = text.find(param.from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(param.from).size(), param.to);
  const documents::DocumentFormat* format = documents::find_document_format(param.format);
  ASSERT_NE(format, nullptr);
  const std::string error = error_text([&] { format->read(text, "file")->graph(); });
  EXPECT_NE(error.find(param.says), std::string::npos) << error;
  EXPECT_NE(error.find("did you mean"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, DocumentAttributes,
    ::testing::Values(Misspelt{"aitemplate", "aitemplate_conv_add.graph.txt", "'split_k'",
                               "'splits_k'", "conv2d has no attribute 'splits_k'"},
                      Misspelt{"chainer", "unet_chainer.graph.txt", "\"cover_all\"",
                               "\"covers_all\"",
                               "Convolution2DFunction has no attribute 'covers_all'"},
                      Misspelt{"megengine", "megengine_resnet50.profile.json", "\"dilate_h\"",
                               "\"dilates_h\"", "ConvolutionForward has no attribute 'dilates_h'"},
                      Misspelt{"relay", "resnet50_v1.before.relay",
                               "strides=", "stride=", "nn.conv2d has no attribute 'stride'"}),
    [](const auto& test) { return std::string(test.param.format); });

}  // namespace
}  // namespace tenon
