#include "unit/frontends/mutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "frontends/document.h"

namespace tenon {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One more in the last place: "5" -> "6", "9" -> "10", "0.149" -> "0.150".
std::string plus_one(std::string number) {
  std::size_t k = number.size();
  while (k > 0) {
    --k;
    if (number[k] == '.') continue;
    if (number[k] != '9') {
      ++number[k];
      return number;
    }
    number[k] = '0';
  }
  return "1" + number;
}

struct Outcome {
  bool is_caught = false, is_named = false;
};

Outcome try_text(const DocumentFormat& format, const std::string& text, const std::string& number,
                 std::size_t line) {
  const std::string line_text = concat("line ", line, ",");
  const auto names = [&](const std::string& message) {
    return message.find(number) != std::string::npos || message.find(line_text) != std::string::npos;
  };
  Outcome outcome;
  try {
    const Findings findings = format.read(text, "mutant")->check();
    outcome.is_caught = !findings.mismatches().empty();
    for (const auto& mismatch : findings.mismatches()) {
      outcome.is_named = outcome.is_named || names(mismatch.place + "," + mismatch.says);
    }
  } catch (const Error& error) {
    outcome.is_caught = true;
    outcome.is_named = names(error.what());
  }
  return outcome;
}

}  // namespace

std::vector<NumberInText> numbers_in(std::string_view text) {
  std::vector<NumberInText> numbers;
  std::size_t line = 1, line_start = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '\n') {
      ++line;
      line_start = k + 1;
    }
    if (!is_digit(text[k])) continue;
    std::size_t end = k;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
      ++end;
      while (end < text.size() && is_digit(text[end])) ++end;
    }
    numbers.push_back({k, end - k, line, k - line_start + 1});
    k = end - 1;
  }
  return numbers;
}

MutationResult mutate_numbers(std::string_view format_name, const std::string& text,
                              const std::function<std::string(const NumberInText&)>& field_of,
                              std::size_t at_most) {
  const DocumentFormat* format = find_document_format(format_name);
  if (format == nullptr) throw Error(concat("no format '", format_name, "'"));
  std::vector<std::pair<NumberInText, std::string>> fields;
  for (const NumberInText& number : numbers_in(text)) {
    if (std::string field = field_of(number); !field.empty()) fields.emplace_back(number, field);
  }
  const bool is_complete = std::getenv("TENON_MUTATE_ALL") != nullptr;
  const std::size_t count = is_complete ? fields.size() : std::min(at_most, fields.size());

  MutationResult result;
  std::map<std::string, std::pair<std::size_t, std::size_t>> by_field;  // caught, tried
  for (std::size_t k = 0; k < count; ++k) {
    const auto& [number, field] = fields[k * fields.size() / count];
    const std::string changed = plus_one(text.substr(number.offset, number.length));
    std::string mutant = text;
    mutant.replace(number.offset, number.length, changed);
    const Outcome outcome = try_text(*format, mutant, changed, number.line);
    ++result.tried;
    result.caught += outcome.is_caught;
    result.named += outcome.is_named;
    by_field[field].first += outcome.is_caught;
    ++by_field[field].second;
    if (!outcome.is_caught) {
      result.missed.push_back(concat(field, " at line ", number.line, ", column ", number.column, ": ", changed));
    }
  }
  for (const auto& [field, counts] : by_field) {
    std::cout << format_name << "  " << field << ": " << counts.first << " of " << counts.second
              << " changes caught\n";
  }
  std::cout << format_name << ": " << result.caught << " of " << result.tried << " changes caught, "
            << result.named << " named, " << fields.size() << " numbers can be checked of "
            << numbers_in(text).size() << "\n";
  return result;
}

std::string read_fixture(const std::string& name) {
  std::ifstream stream("tests/fixtures/" + name, std::ios::binary);
  if (!stream) throw Error(concat("no fixture ", name));
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

}  // namespace tenon
