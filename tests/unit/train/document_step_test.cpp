#include "base/error.h"
#include "documents/document.h"
#include "train/document_step.h"
#include "unit/documents/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace tenon::document_step_test {
namespace {

std::string text_of(const std::string& model, const std::string& format, const std::string& loss) {
  return documents::find_document_format(format)
      ->from_graph(train::document_step(model, format, loss))
      ->text("");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the records of a Chainer document with structural names for variables in place of their
// ids: parameters and inputs by name, others by their function and its operands. Two documents are
// isomorphic if these sets are equal. `known` numbers the names consistently across both documents.
std::multiset<std::string> records_without_numbers(const std::string& text,
                                                   std::map<std::string, std::size_t>& known) {
  const std::vector<std::string> lines = lines_of(text);
  std::size_t at = 0;
  std::size_t variable_count = 0, function_count = 0;
  std::istringstream(lines[at++]) >> variable_count >> function_count;
  const auto number = [&](const std::string& name) {
    return known.try_emplace(name, known.size()).first->second;
  };
  std::map<std::string, std::string> bytes;
  std::map<std::string, std::size_t> called;
  for (std::size_t k = 0; k < variable_count; ++k) {
    std::string id, size, name;
    std::istringstream(lines[at++]) >> id >> size >> name;
    bytes[id] = size;
    if (name != "_") called[id] = number(concat(name, " ", size));
  }
  struct Record {
    std::string kind, name, attributes;
    std::vector<std::pair<std::string, std::string>> inputs;  // id, tag
    std::vector<std::string> outputs;
  };
  std::vector<Record> records;
  for (std::size_t k = 0; k < function_count; ++k) {
    Record record;
    record.kind = lines[at++];
    std::size_t inputs = 0, outputs = 0;
    std::istringstream(lines[at++]) >> inputs >> outputs;
    for (std::size_t n = 0; n < inputs; ++n) {
      std::string id, tag;
      std::istringstream(lines[at++]) >> id >> tag;
      record.inputs.emplace_back(id, tag);
    }
    for (std::size_t n = 0; n < outputs; ++n) record.outputs.push_back(lines[at++]);
    record.name = lines[at++];
    record.attributes = lines[at++];
    records.push_back(record);
  }
  const auto all_called = [&](const Record& record) {
    return std::ranges::all_of(record.inputs,
                               [&](const auto& input) { return called.contains(input.first); });
  };
  const auto told = [&](const Record& record) {
    std::string record_text = concat(record.kind, " ", record.name, " ", record.attributes);
    for (const auto& [id, tag] : record.inputs) record_text += concat(" ", called[id], ":", tag);
    return record_text;
  };
  for (bool is_going_on = true; is_going_on;) {
    is_going_on = false;
    for (const Record& record : records) {
      if (record.kind != "forward" || !all_called(record) || called.contains(record.outputs[0]))
        continue;
      for (std::size_t n = 0; n < record.outputs.size(); ++n)
        called[record.outputs[n]] =
            number(concat(told(record), " gives ", n, " of ", bytes[record.outputs[n]]));
      is_going_on = true;
    }
  }
  std::multiset<std::string> result;
  for (const Record& record : records) {
    EXPECT_TRUE(all_called(record)) << record.name;
    std::string record_text = told(record);
    for (const std::string& output : record.outputs)
      record_text += concat(" -> ", called[output], " ", bytes[output]);
    result.insert(record_text);
  }
  return result;
}

TEST(DocumentStep, UNetMatchesTheChainerDocument) {
  const std::string made = text_of("zoo:unet572?batch=8", "chainer", "");
  const std::string document = read_fixture("unet_chainer.graph.txt");
  EXPECT_EQ(lines_of(made)[0], lines_of(document)[0]);
  std::map<std::string, std::size_t> known;
  const auto ours = records_without_numbers(made, known);
  const std::size_t names = known.size();
  EXPECT_EQ(ours, records_without_numbers(document, known));
  EXPECT_EQ(known.size(), names);  // each variable has a counterpart in the other
  EXPECT_EQ(ours.size(), 120u);
}

// An additional attribute of one function, or different wiring, makes a different graph.
TEST(DocumentStep, DifferentGraphsAreNotIsomorphic) {
  std::map<std::string, std::size_t> known;
  const std::string document = read_fixture("mlp_chainer.graph.txt");
  const auto whole = records_without_numbers(document, known);
  std::string changed = document;
  changed.replace(changed.find("\"rank\": 1"), 9, "\"rank\": 7");
  EXPECT_NE(whole, records_without_numbers(changed, known));
}

// 178 rows; TensorFlow numbers 13 transposes in the iteration order of a set.
TEST(DocumentStep, AlexNetMatchesTheTensorScopeTable) {
  const std::regex ordinal("-[0-9]+-([0-9]+-TransposeNCHWToNHWC-LayoutOptimizer)");
  const auto rows = [&](const std::string& text) {
    std::multiset<std::string> all;
    for (const std::string& line : lines_of(text))
      all.insert(std::regex_replace(line, ordinal, "-*-$1"));
    return all;
  };
  const std::string made = text_of("zoo:alexnet?batch=128,images=variable", "tensorscope", "l2");
  const auto ours = rows(made), theirs = rows(read_fixture("tensorscope_alexnet.nodes.txt"));
  EXPECT_EQ(ours.size(), 178u);
  for (const std::string& row : theirs) EXPECT_TRUE(ours.contains(row)) << "lacks " << row;
  for (const std::string& row : ours) EXPECT_TRUE(theirs.contains(row)) << "has " << row;
}

TEST(DocumentStep, LossAndGradientsOfOtherFormats) {
  const Graph step = train::document_step("zoo:mlp?batch=4", "onnx", "mse");
  EXPECT_TRUE(step.find("target"));
  EXPECT_GT(step.outputs().size(), 4u);
  EXPECT_TRUE(step.value(step.outputs()[1]).name.starts_with("d_"));
}

}  // namespace
}  // namespace tenon::document_step_test
