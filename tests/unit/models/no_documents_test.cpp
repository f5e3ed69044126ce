#include "models/model.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(WithoutDocuments, FilesOfTheirFormatsAreRefused) {
  if (!documents::document_formats().empty()) GTEST_SKIP() << "needs a build without documents";
  const std::string relay =
      error_text([] { models::load_model("tests/fixtures/relay_control.relay"); });
  EXPECT_EQ(relay.substr(0, relay.find('\n')),
            "this build has no documents, so it does not know the format 'relay'");
  EXPECT_EQ(error_text([] { models::model_text(models::load_model("zoo:mlp"), "aitemplate"); }),
            "this build has no documents, so it does not know the format 'aitemplate'\n"
            "  hint      configure it with -DTENON_DOCUMENTS=ON");
}

}  // namespace
}  // namespace tenon
