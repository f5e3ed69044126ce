#include "frontends/document.h"
#include "unit/frontends/mutation.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

const DocumentFormat& format() { return *find_document_format("megengine"); }
const std::string kResnet = "megengine_resnet50.profile.json";

TEST(MegengineFile, IsWrittenBackByteForByte) {
  const std::string text = read_fixture(kResnet);
  ASSERT_TRUE(format().recognises(std::string_view(text).substr(0, 4096)));
  EXPECT_EQ(format().read(text, kResnet)->text(""), text);
}

TEST(MegengineFile, HoldsAllItsClaims) {
  const Findings findings = format().read(read_fixture(kResnet), kResnet)->check();
  for (const auto& mismatch : findings.mismatches()) {
    ADD_FAILURE() << mismatch.kind << " at " << mismatch.place << ": " << mismatch.says << ", not "
                  << mismatch.should_be;
  }
}

}  // namespace
}  // namespace tenon
