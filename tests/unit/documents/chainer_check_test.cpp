// `check` on Chainer's training graphs: valid documents pass, and every changed number is reported.
#include "base/error.h"
#include "documents/document.h"
#include "unit/documents/mutation.h"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

namespace tenon::chainer_check_test {
namespace {

documents::Findings check(const std::string& text) {
  return documents::find_document_format("chainer")->read(text, "file")->check();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw Error("the text to replace is not there").got(from);
  return text.replace(at, from.size(), to);
}

TEST(ChainerCheck, UNetPasses) {
  const documents::Findings findings = check(read_fixture("unet_chainer.graph.txt"));
  EXPECT_TRUE(findings.mismatches().empty());
  std::map<std::string, std::size_t> holding;
  for (const documents::Findings::Kind& kind : findings.kinds()) holding[kind.name] = kind.holding;
  EXPECT_EQ(holding["tensor size"], 108u);
  EXPECT_EQ(holding["rank"], 120u);
  EXPECT_EQ(holding["backward: function"], 60u);
  EXPECT_EQ(holding["backward: inputs"], 60u);
  EXPECT_EQ(holding["backward: retained outputs"], 60u);
  EXPECT_EQ(holding["retained"], 120u);
}

// One wrong size: the message has the position, the stated value and the value that the rest of the
// document implies.
TEST(ChainerCheck, ReportsAWrongSizeWithTheExpectedOne) {
  const struct {
    const char *from, *to, *place, *should_be;
  } cases[] = {
      {"\n0 37879808 _", "\n0 37879812 _", "line 2, column 3", "37879808"},  // result of a pooling
      // result of a concat
      {"\n91 944111616 _", "\n91 943111616 _", "line 93, column 4", "944111616"},
      {"\n37 4817408 1", "\n37 4817412 1", "line 39, column 4", "4817408"},     // the labels
      {"\n53 10469888 0", "\n53 10469892 0", "line 55, column 4", "10469888"},  // the image
      {"\n6 1179648 /conv_u1b_c/W", "\n6 1179652 /conv_u1b_c/W", "line 8, column 3", "1179648"},
      {"\n47 2304 /conv_d0a_b/W", "\n47 2308 /conv_d0a_b/W", "line 49, column 4", "2304"},
      {"\n10 512 /conv_u1b_c/b", "\n10 516 /conv_u1b_c/b", "line 12, column 4", "512"},
      // not a multiple of four
      {"\n26 262144 /up", "\n26 262143 /up", "line 28, column 4", "262144"},
      {"\n4 4 _", "\n4 8 _", "line 6, column 3", "4"},  // the loss
  };
  const std::string text = read_fixture("unet_chainer.graph.txt");
  for (const auto& each : cases) {
    const documents::Findings findings = check(replaced(text, each.from, each.to));
    ASSERT_EQ(findings.mismatches().size(), 1u) << each.to;
    EXPECT_EQ(findings.mismatches()[0].kind, "tensor size");
    EXPECT_EQ(findings.mismatches()[0].place, each.place) << each.to;
    EXPECT_EQ(findings.mismatches()[0].should_be, each.should_be) << each.to;
  }
}

// Both records of a function contain its attributes; the sizes decide which of two is wrong.
TEST(ChainerCheck, ReportsTheWrongOneOfTwoAttributes) {
  const std::string text = read_fixture("unet_chainer.graph.txt");
  const std::size_t backward = text.find("\nbackward\n");
  const documents::Findings forward = check(replaced(text, "{\"sy\": 1", "{\"sy\": 2"));
  ASSERT_EQ(forward.mismatches().size(), 1u);
  EXPECT_EQ(forward.mismatches()[0].kind, "forward: attribute");
  EXPECT_EQ(forward.mismatches()[0].place, "line 123, column 8");
  EXPECT_EQ(forward.mismatches()[0].says, "sy = 2");
  EXPECT_EQ(forward.mismatches()[0].should_be, "1");
  const std::string after =
      text.substr(0, backward) + replaced(text.substr(backward), "{\"sy\": 1", "{\"sy\": 2");
  const documents::Findings back = check(after);
  ASSERT_EQ(back.mismatches().size(), 1u);
  EXPECT_EQ(back.mismatches()[0].kind, "backward: attribute");
  EXPECT_EQ(back.mismatches()[0].should_be, "1");
}

// An impossible stride is reported in its record, even if shape inference fails with it.
TEST(ChainerCheck, ReportsImpossibleAttributes) {
  const std::string text = read_fixture("unet_chainer.graph.txt");
  const documents::Findings findings = check(replaced(text, "{\"sy\": 1", "{\"sy\": 0"));
  ASSERT_EQ(findings.mismatches().size(), 2u);
  EXPECT_EQ(findings.mismatches()[0].kind, "forward: attribute");
  EXPECT_EQ(findings.mismatches()[0].should_be, "1");
  EXPECT_EQ(findings.mismatches()[1].place, "line 123, column 8");
}

TEST(ChainerCheck, ComparesRanksRetainedIndexesAndPairs) {
  const std::string text = read_fixture("residual_chainer.graph.txt");
  const std::pair<std::string, std::string> rank{"\"rank\": 19", "\"rank\": 20"};
  const documents::Findings ranks = check(replaced(text, rank.first, rank.second));
  ASSERT_EQ(ranks.mismatches().size(), 1u);
  EXPECT_EQ(ranks.mismatches()[0].kind, "rank");
  EXPECT_EQ(ranks.mismatches()[0].should_be, "19");

  const documents::Findings retained = check(replaced(text, "\"_input_indexes_to_retain\": [0, 1]",
                                                      "\"_input_indexes_to_retain\": [0, 2]"));
  bool is_named = false;
  for (const auto& mismatch : retained.mismatches()) {
    is_named = is_named || (mismatch.kind == "retained" && mismatch.says == "[0, 2]" &&
                            mismatch.should_be == "[0, 1]");
  }
  EXPECT_TRUE(is_named);

  const documents::Findings name = check(replaced(text, "\nAdd\n", "\nSub\n"));
  EXPECT_FALSE(name.mismatches().empty());
}

// Each tensor's size plus one element, minus one element, and doubled: reported at that tensor with
// the right size.
TEST(ChainerMutation, EverySizeIsDetermined) {
  const std::string text = read_fixture("unet_chainer.graph.txt");
  std::size_t tried = 0, caught = 0, named = 0;
  for (std::size_t at = text.find('\n') + 1; text[at] != 'f'; at = text.find('\n', at) + 1) {
    const std::size_t bytes_at = text.find(' ', at) + 1, end = text.find(' ', bytes_at);
    const std::string bytes = text.substr(bytes_at, end - bytes_at);
    const std::int64_t value = std::stoll(bytes);
    for (const std::int64_t changed : {value + 4, 2 * value}) {
      std::string mutant = text;
      const documents::Findings findings =
          check(mutant.replace(bytes_at, bytes.size(), std::to_string(changed)));
      ++tried;
      caught += !findings.mismatches().empty();
      for (const auto& mismatch : findings.mismatches()) {
        named += mismatch.says == std::to_string(changed) && mismatch.should_be == bytes;
      }
    }
  }
  std::cout << "chainer: " << caught << " of " << tried << " sizes caught, " << named
            << " put right\n";
  EXPECT_EQ(tried, 216u);
  // Labels of twice the bytes are 64-bit class numbers; first weights of twice the size belong to
  // an image with twice the channels.
  EXPECT_EQ(caught, tried - 1);
  EXPECT_EQ(named, tried - 2);
}

std::size_t digits_in(const std::string& text) { return numbers_in(text).size(); }

// Digits inside the paths of parameters are names, and those of input indexes and tags are not.
TEST(ChainerMutation, FindsChangedNumbers) {
  for (const char* name :
       {"unet_chainer.graph.txt", "residual_chainer.graph.txt", "mlp_chainer.graph.txt"}) {
    const std::string text = read_fixture(name);
    std::vector<std::string> lines{""};
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    const auto field_of = [&](const NumberInText& number) -> std::string {
      const std::string& line = lines[number.line];
      const std::string before = line.substr(0, number.column - 1);
      if (number.line == 1) return "header count";
      if (line.rfind('{', 0) == 0) {
        // The name of the attribute that contains the number.
        const std::size_t colon = before.rfind("\": ");
        const std::size_t quote = colon == std::string::npos ? colon : before.rfind('"', colon - 1);
        if (quote == std::string::npos) return "";
        return "attribute " + before.substr(quote + 1, colon - quote - 1);
      }
      if (line.find('/') != std::string::npos && before.find('/') != std::string::npos)
        return "";  // a path
      if (line[0] >= 'A' && line[0] <= 'Z') return "function name";
      const std::size_t spaces =
          static_cast<std::size_t>(std::count(before.begin(), before.end(), ' '));
      const bool is_variable =
          static_cast<std::size_t>(std::count(line.begin(), line.end(), ' ')) >= 2;
      if (is_variable) return spaces == 0 ? "variable id" : spaces == 1 ? "bytes" : "input index";
      return spaces == 1 ? "output count" : digits_in(line) == 2 ? "input count" : "id in a record";
    };
    const MutationResult result =
        mutate_numbers("chainer", text, field_of, name[0] == 'u' ? 150 : 60);
    EXPECT_GT(result.share(), 0.95) << name;
    EXPECT_GE(result.first * 10, result.tried * 9) << name;
    for (const std::string& missed : result.missed) ADD_FAILURE() << name << ": " << missed;
  }
}

}  // namespace
}  // namespace tenon::chainer_check_test
