#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A run of digits in a document (a fraction is part of it).
struct NumberInText {
  std::size_t offset = 0, length = 0;
  std::size_t line = 1, column = 1;
};
std::vector<NumberInText> numbers_in(std::string_view text);

struct MutationResult {
  std::size_t tried = 0;
  /// reading or checking reports an error
  std::size_t caught = 0;
  /// the report shows the changed number or its line
  std::size_t named = 0;
  /// the first report does
  std::size_t first = 0;
  std::vector<std::string> missed;
  double share() const {
    return tried == 0 ? 0 : static_cast<double>(caught) / static_cast<double>(tried);
  }
};

/// Mutation test of a reader and its check: adds one to each number of a document, one at a time.
/// `field_of` names the field that contains a number; "" for numbers that the rest of the document
/// does not determine. Tries an even sample of `at_most`, or every number if TENON_MUTATE_ALL is
/// set, and prints a table of the fields.
MutationResult mutate_numbers(std::string_view format, const std::string& text,
                              const std::function<std::string(const NumberInText&)>& field_of,
                              std::size_t at_most);

/// The same for words and lines: renames a word (adds a letter), deletes a line, swaps two
/// neighbours. A text of a single line is cut at its commas. Tries `at_most` of each, and prints a
/// table.
MutationResult mutate_words(std::string_view format, const std::string& text, std::size_t at_most);

/// The text of tests/fixtures/NAME.
std::string read_fixture(const std::string& name);

}  // namespace tenon
