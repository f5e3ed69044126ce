#include "base/error.h"
#include "passes/definition/pass.h"

#include <gtest/gtest.h>

namespace tenon::pass_options_test {
namespace {

std::string message(const char* setting) {
  passes::PassOptions options;
  try {
    passes::set_option(options, setting);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    return error.what();
  }
  return "no error";
}

TEST(PassOptions, AreSetByName) {
  passes::PassOptions options;
  passes::set_option(options, "fuse.mode=relay");
  passes::set_option(options, " fuse.max-depth = 10");
  passes::set_option(options, "fold-constants.max-bytes=64");
  EXPECT_EQ(options.fuse_mode, "relay");
  EXPECT_EQ(options.fuse_max_depth, 10u);
  EXPECT_EQ(options.max_constant_bytes, 64);
  passes::set_option(options, "fuse.mode=bytes");
  EXPECT_EQ(options.fuse_mode, "");
}

TEST(PassOptions, RefuseInvalidValues) {
  EXPECT_EQ(message("fuse.mode=tvm"),
            "option 'fuse.mode' cannot be 'tvm'\n  expected  one of bytes, relay");
  EXPECT_EQ(message("fuse.max-depth=many"),
            "option 'fuse.max-depth' cannot be 'many'\n  expected  a number from 0");
  EXPECT_EQ(message("fuse.mod=relay"),
            "no option is called 'fuse.mod'\n  hint      did you mean 'fuse.mode'?");
  EXPECT_EQ(message("fuse.mode"), "'fuse.mode' sets no option\n  expected  PASS.OPTION=VALUE");
}

}  // namespace
}  // namespace tenon::pass_options_test
