#pragma once

#include <string>
#include <vector>

namespace tenon::testing {

/// One case of a `.test` file: a directive, its body, and the expectation after `----`.
struct TestCase {
  std::string file;
  /// of the directive, counted from 1
  int line = 0;
  /// "check", "eval", …
  std::string directive;
  /// the rest of the directive's line
  std::string arguments;
  /// the sentence above it
  std::string comment;
  std::vector<std::string> body;
  /// text after `----`: "", "error" or "same as"
  std::string separator;
  bool has_expectation = false;
  std::vector<std::string> expected;
  /// lines [begin, end) of the file, for --update
  int expected_begin = 0, expected_end = 0;

  std::string where() const { return file + ":" + std::to_string(line); }
};

/// Cases start with a directive at the start of a line; a case with a body ends at a blank line
/// after its expectation, or at the end of the file.
std::vector<TestCase> read_test_file(const std::string& path);

/// Result of a case: an empty `failure` if it passed. `actual` replaces the expectation under
/// `--update`.
struct Outcome {
  std::string failure;
  std::vector<std::string> actual;
};

Outcome run_case(const TestCase& test);
/// The texts of the graphs in a case's body and expectation.
std::vector<std::string> graphs_in(const TestCase& test);
/// Runs a `check` line: one op against every rule that holds for all ops.
std::string check_op(const TestCase& test);

/// Compares the compiled graph of a case with the reference; empty for agreement, and for a case
/// without results.
std::string run_compiled_case(const TestCase& test);
std::string check_compiled_op(const TestCase& test);

std::vector<std::string> lines_of(const std::string& text);
std::string text_of(const std::vector<std::string>& lines);

}  // namespace tenon::testing
