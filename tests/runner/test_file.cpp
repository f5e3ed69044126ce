#include "test_file.h"

#include "base/error.h"
#include "base/text.h"

#include <fstream>
#include <sstream>

namespace tenon::testing {
namespace {

bool is_blank(const std::string& line) { return trim(line).empty(); }
bool is_separator(const std::string& line) { return line.rfind("----", 0) == 0; }

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<TestCase> read_test_file(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw Error("cannot open the test file").at(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);

  std::vector<TestCase> cases;
  std::string comment;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    const std::string& line = lines[k];
    if (is_blank(line)) {
      comment.clear();
      continue;
    }
    if (line[0] == '#') {
      comment += std::string(trim(line.substr(1))) + " ";
      continue;
    }
    TestCase test;
    test.file = path;
    test.line = static_cast<int>(k) + 1;
    test.comment = comment;
    const std::size_t space = line.find(' ');
    test.directive = line.substr(0, space);
    if (space != std::string::npos) test.arguments = std::string(trim(line.substr(space)));
    if (test.directive != "check") {
      for (++k; k < lines.size() && !is_separator(lines[k]); ++k) test.body.push_back(lines[k]);
      if (k == lines.size()) throw Error("a case has no '----' line").at(test.where());
      test.has_expectation = true;
      test.separator = std::string(trim(lines[k].substr(4)));
      test.expected_begin = static_cast<int>(k) + 1;
      for (++k; k < lines.size() && !is_blank(lines[k]); ++k) test.expected.push_back(lines[k]);
      test.expected_end = static_cast<int>(k);
      comment.clear();
    }
    cases.push_back(std::move(test));
  }
  return cases;
}

std::vector<std::string> graphs_in(const TestCase& test) {
  std::vector<std::string> graphs;
  if (test.separator == "error") return graphs;  // the body may be malformed
  const auto collect = [&](const std::vector<std::string>& lines) {
    std::string text;
    bool is_inside = false;
    for (const std::string& line : lines) {
      if (line.rfind("graph", 0) == 0) {
        is_inside = true;
        text.clear();
      }
      if (!is_inside) continue;
      text += line + "\n";
      if (line.rfind('}', 0) == 0) {
        graphs.push_back(text);
        is_inside = false;
      }
    }
  };
  collect(test.body);
  collect(test.expected);
  return graphs;
}

}  // namespace tenon::testing
