#include "unit/documents/mutation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace tenon::word_mutation_test {
namespace {

struct Case {
  const char *format, *fixture;
  /// minimum detection rate
  double least;
};

class WordMutation : public ::testing::TestWithParam<Case> {};

// Renames words, deletes lines and swaps them. Undetectable changes are those of names without
// readers and of lines whose order is irrelevant.
TEST_P(WordMutation, IsDetected) {
  const MutationResult result =
      mutate_words(GetParam().format, read_fixture(GetParam().fixture), 25);
  EXPECT_GE(result.share(), GetParam().least);
  if (std::getenv("TENON_MUTATE_ALL") == nullptr) return;
  for (const std::string& missed : result.missed) std::cout << "  not found: " << missed << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Documents, WordMutation,
    ::testing::Values(Case{"aitemplate", "aitemplate_conv_add.graph.txt", 0.65},
                      Case{"chainer", "unet_chainer.graph.txt", 0.8},
                      Case{"megengine", "megengine_resnet50.profile.json", 0.75},
                      Case{"relay", "resnet50_v1.before.relay", 0.8},
                      Case{"tensorscope", "tensorscope_alexnet.nodes.txt", 0.8}),
    [](const auto& test) { return std::string(test.param.format); });

}  // namespace
}  // namespace tenon::word_mutation_test
