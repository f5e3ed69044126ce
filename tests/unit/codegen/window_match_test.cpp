#include "codegen/cuda/library_conditions.h"
#include "codegen/cuda/window_match.h"
#include "nests/parse.h"

#include <gtest/gtest.h>

namespace tenon::window_match_test {
namespace {

using codegen::cuda::ChannelPadding;
using codegen::cuda::WindowMatch;

enum class Form { Convolution, WeightGradient, DataGradient };

// Matches point into their nest.
struct Matched {
  explicit Matched(const std::string& text, Form form,
                   ChannelPadding padding = ChannelPadding::Unpadded)
      : nest(nests::parse_nest(text)) {
    using namespace codegen::cuda;
    const auto contraction = nests::find_contraction(nest);
    const auto store = only_store(contraction.value());
    match = form == Form::Convolution ? match_windows(*contraction, store.value(), padding, 8)
            : form == Form::WeightGradient
                ? match_weight_gradient_windows(*contraction, store.value(), padding, 8)
                : match_data_gradient_windows(*contraction, store.value());
  }

  nests::LoopNest nest;
  WindowMatch match;
};

std::string text_of(const WindowMatch& match) {
  std::string text;
  for (const Dim& extent : match.extents()) text += to_string(extent) + " ";
  return text;
}

std::string convolution(const std::string& x, const std::string& at) {
  return "kernel k (out y: f32[2, 5, 8, 6], x: f32" + x + R"(, w: f32[6, 2, 3, 3]) {
  for n in 0..2 {
    for i in 0..5 {
      for j in 0..8 {
        for g in 0..2 {
          for o in 0..3 {
            t0 = 0.0
            for c in 0..2 carried {
              for r in 0..3 carried {
                for s in 0..3 carried {
                  t0 = sum(t0, (x)" +
         at + R"( else 0.0 * w[((g * 3) + o), c, r, s]))
                }
              }
            }
            y[n, i, j, ((g * 3) + o)] = t0
          }
        }
      }
    }
  }
}
)";
}

// Extents: batch, image, channels and outputs of a group, window, result, padding, strides,
// dilations, groups.
TEST(WindowMatch, GroupedConvolution) {
  const Matched made(
      convolution("[2, 9, 8, 4]", "[n, (((i * 2) + r) - 1), ((j + s) - 1), ((g * 2) + c)]"),
      Form::Convolution);
  EXPECT_EQ(made.match.refusal, "");
  EXPECT_EQ(text_of(made.match), "2 9 8 2 3 3 3 5 8 1 1 1 1 2 1 1 1 2 ");
  EXPECT_FALSE(made.match.has_weight_layout);
  const auto packing = made.match.packing();
  ASSERT_TRUE(packing);
  EXPECT_EQ(packing->extents, (std::vector<std::int64_t>{2, 3, 3, 3, 2}));
}

// An image with more channels than the groups read is no grouped convolution.
TEST(WindowMatch, RefusesGroupsThatOverlap) {
  EXPECT_EQ(
      Matched(convolution("[2, 9, 8, 5]", "[n, (((i * 2) + r) - 1), ((j + s) - 1), ((g * 2) + c)]"),
              Form::Convolution)
          .match.refusal,
      "groups of channels");
  EXPECT_EQ(
      Matched(convolution("[2, 9, 8, 4]", "[n, (((i * 2) + r) - 1), ((g + s) - 1), ((g * 2) + c)]"),
              Form::Convolution)
          .match.refusal,
      "a loop along two axes");
}

std::string weight_gradient(const std::string& at) {
  return R"(kernel k (out y: f32[6, 3, 3, 4], x: f32[2, 9, 8, 4], dy: f32[2, 5, 8, 6]) {
  for o in 0..6 {
    for r in 0..3 {
      for s in 0..3 {
        for c in 0..4 {
          t0 = 0.0
          for n in 0..2 carried {
            for i in 0..5 carried {
              for j in 0..8 carried {
                t0 = sum(t0, (x)" +
         at + R"( else 0.0 * dy[n, i, j, o]))
              }
            }
          }
          y[o, r, s, c] = t0
        }
      }
    }
  }
}
)";
}

TEST(WindowMatch, WeightGradient) {
  const std::string text = weight_gradient("[n, (((i * 2) + r) - 1), ((j + s) - 1), c]");
  const Matched made(text, Form::WeightGradient);
  EXPECT_EQ(made.match.refusal, "");
  EXPECT_TRUE(made.match.has_weight_layout);
  EXPECT_EQ(text_of(made.match), "2 9 8 4 6 3 3 5 8 1 1 1 1 2 1 1 1 1 ");
  const Matched padded(text, Form::WeightGradient, ChannelPadding::Paddable);
  EXPECT_EQ(padded.match.refusal, "few channels");
  EXPECT_EQ(padded.match.request.channels, 8);
}

// A sum over positions that do not move the image is no convolution.
TEST(WindowMatch, RefusesImagesWithoutPositions) {
  EXPECT_EQ(Matched(weight_gradient("[n, (((i * 2) + r) - 1), s, c]"), Form::WeightGradient)
                .match.refusal,
            "loops that move along no axis");
}

// Stride 2 and a window of 3 taps on rows: two phases with two taps each, of which one is padding.
TEST(WindowMatch, StridedDataGradient) {
  const Matched made(
      R"(kernel k (out y: f32[2, 10, 8, 4], dy: f32[2, 5, 8, 6], w: f32[6, 3, 3, 4]) {
  for n in 0..2 {
    for i in 0..5 {
      for p in 0..2 {
        for j in 0..8 {
          for c in 0..4 {
            t0 = 0.0
            for r in 0..2 carried {
              for s in 0..3 carried {
                for o in 0..6 carried {
                  t0 = sum(t0, (dy[n, (i - r), ((j - s) + 1), o] else 0.0 * w[o, ((r * 2) + p), s, c] else 0.0))
                }
              }
            }
            y as [2, 5, 2, 8, 4] at [n, i, p, j, c] = t0
          }
        }
      }
    }
  }
}
)",
      Form::DataGradient);
  EXPECT_EQ(made.match.refusal, "");
  EXPECT_EQ(text_of(made.match), "2 10 8 4 6 3 3 5 8 0 1 1 1 2 1 1 1 1 ");
}

}  // namespace
}  // namespace tenon::window_match_test
