#include "base/error.h"
#include "ir/type.h"

#include <gtest/gtest.h>

namespace tenon::type_test {
namespace {

TEST(Layout, NamesAxes) {
  const Layout blocked("NCHW8c");
  EXPECT_EQ(blocked.rank(), 5u);
  EXPECT_EQ(blocked.axis('C'), 1u);
  EXPECT_EQ(blocked.axis('c'), 4u);
  EXPECT_EQ(blocked.axis('X'), std::nullopt);
  EXPECT_EQ(blocked.block('C'), 8);
  EXPECT_EQ(blocked.block('N'), 1);
  EXPECT_EQ(Layout("OIHW4i16o").block('O'), 16);
  EXPECT_TRUE(Layout().is_empty());
  for (const char* text :
       {"nchw", "NN", "NC8", "NCHW8x", "N8nC", "NC0c", "NC08c", "NC8c4c", "N C"}) {
    EXPECT_THROW(Layout{text}, Error) << text;
  }
}

TEST(Type, RoundTripsText) {
  for (const char* text :
       {"f32[N, 3, floor((h - 1)/2)]@NCH", "f32[]", "?", "seq(f32[2])", "bool[0]",
        "optional(seq(i64[]))", "seq(?)", "f8e4m3fn[2*s + 1]", "string[\"a, ]\"]",
        "f32[1, 2, 3, 4, 8]@NCHW8c", "c64[max(0, s - 3), mod(s, 4)]"}) {
    EXPECT_EQ(to_string(parse_type(text)), text);
    EXPECT_EQ(parse_type(text), parse_type(text));
  }
  EXPECT_EQ(to_string(parse_type(" f32 [ 1 ,2 ] ")), "f32[1, 2]");
  EXPECT_NE(parse_type("f32[2]"), parse_type("f32[3]"));
  EXPECT_NE(parse_type("seq(f32[2])"), parse_type("optional(f32[2])"));
}

TEST(Type, RefusesBadText) {
  for (const char* text : {"", "f32", "f33[2]", "f32[", "f32[1,]", "f32[1]x", "seq(f32[1]", "seq()",
                           "f32[1]@NC", "f32[1]@", "f32[1 2]"}) {
    EXPECT_THROW(parse_type(text), Error) << text;
  }
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += "seq(";
  EXPECT_THROW(parse_type(deep), Error);
  try {
    parse_type("f32[1, $]");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cannot read type 'f32[1, $]'\n  at        column 8\n"
                 "  expected  a number, a name or '('\n  got       \"$]\"");
  }
}

TEST(Type, CountsAndSubstitutes) {
  const Type type = parse_type("seq(f16[N, 3])");
  EXPECT_EQ(to_string(substitute(type, {{"N", 4}})), "seq(f16[4, 3])");
  EXPECT_EQ(to_string(byte_count(type.element().tensor())), "6*N");
  EXPECT_EQ(byte_count(parse_type("i4[3]").tensor()), Dim(2));
  EXPECT_EQ(byte_count(parse_type("f64[]").tensor()), Dim(8));
  EXPECT_THROW(type.tensor(), InternalError);
}

TEST(DType, TableIsConsistent) {
  for (const DTypeInfo& row : all_dtypes()) EXPECT_EQ(parse_dtype(row.name), row.dtype);
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(lowest_integer(DType::I4), -8);
  EXPECT_EQ(highest_integer(DType::I2), 1u);
  EXPECT_EQ(lowest_integer(DType::I64), INT64_MIN);
  EXPECT_EQ(highest_integer(DType::U64), UINT64_MAX);
  EXPECT_EQ(highest_integer(DType::U2), 3u);
}

}  // namespace
}  // namespace tenon::type_test
