#include "unit/documents/mutation.h"

#include "base/error.h"
#include "documents/root_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

namespace tenon {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One more in the last digit: "5" -> "6", "9" -> "10", "0.149" -> "0.150".
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
  bool is_caught = false, is_named = false, is_first = false;
};

Outcome try_text(const documents::DocumentFormat& format, const std::string& text,
                 const std::string& number, std::size_t line) {
  const std::string line_text = concat("line ", line, ",");
  const auto names = [&](const std::string& message) {
    return message.find(number) != std::string::npos ||
           message.find(line_text) != std::string::npos;
  };
  Outcome outcome;
  try {
    const std::unique_ptr<documents::Document> document = format.read(text, "mutant");
    const documents::Findings findings = documents::check_root_first(format, *document);
    outcome.is_caught = !findings.mismatches().empty();
    for (const auto& mismatch : findings.mismatches()) {
      outcome.is_named = outcome.is_named || names(mismatch.place + "," + mismatch.says);
      if (&mismatch == &findings.mismatches().front()) outcome.is_first = outcome.is_named;
    }
    if (!outcome.is_caught) document->graph();  // as the command does
  } catch (const Error& error) {
    outcome.is_caught = true;
    outcome.is_named = outcome.is_first = names(error.what());
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
  const documents::DocumentFormat* format = documents::find_document_format(format_name);
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
    result.first += outcome.is_first;
    if (std::getenv("TENON_MUTATE_LATE") != nullptr && outcome.is_caught && !outcome.is_first)
      std::cout << "  late: " << field << " at line " << number.line << ": " << changed << "\n";
    by_field[field].first += outcome.is_caught;
    ++by_field[field].second;
    if (!outcome.is_caught) {
      result.missed.push_back(
          concat(field, " at line ", number.line, ", column ", number.column, ": ", changed));
    }
  }
  for (const auto& [field, counts] : by_field) {
    std::cout << format_name << "  " << field << ": " << counts.first << " of " << counts.second
              << " changes caught\n";
  }
  std::cout << format_name << ": " << result.caught << " of " << result.tried << " changes caught, "
            << result.named << " named, " << result.first << " first, " << fields.size()
            << " numbers can be checked of " << numbers_in(text).size() << "\n";
  return result;
}

MutationResult mutate_words(std::string_view format_name, const std::string& text,
                            std::size_t at_most) {
  const documents::DocumentFormat* format = documents::find_document_format(format_name);
  if (format == nullptr) throw Error(concat("no format '", format_name, "'"));
  const char cut = std::count(text.begin(), text.end(), '\n') < 3 ? ',' : '\n';
  std::vector<std::string> pieces;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, cut);) pieces.push_back(piece);
  const auto joined = [&](const std::vector<std::string>& list) {
    std::string whole;
    for (const std::string& piece : list) whole += piece + cut;
    if (!text.ends_with(cut)) whole.pop_back();
    return whole;
  };
  const bool is_complete = std::getenv("TENON_MUTATE_ALL") != nullptr;
  MutationResult result;
  for (const std::string_view kind : {"rename", "delete", "swap"}) {
    std::size_t tried = 0, caught = 0, first = 0;
    const std::size_t count = std::min(pieces.size() - 1, is_complete ? at_most * 10 : at_most);
    for (std::size_t n = 0; n < count; ++n) {
      const std::size_t k = n * (pieces.size() - 1) / count;
      std::vector<std::string> list = pieces;
      if (kind == "rename") {
        // A letter inside a word, so that it is another word of the same kind.
        const auto is_letter = [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        };
        const auto place = std::adjacent_find(list[k].begin(), list[k].end(), [&](char a, char b) {
          return is_letter(a) && is_letter(b);
        });
        if (place == list[k].end()) continue;
        list[k].insert(place + 1, 'q');
      } else if (kind == "delete") {
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(k));
      } else {
        if (list[k] == list[k + 1]) continue;
        std::swap(list[k], list[k + 1]);
      }
      const Outcome outcome =
          try_text(*format, joined(list), list[std::min(k, list.size() - 1)], k + 1);
      ++tried;
      caught += outcome.is_caught;
      first += outcome.is_first;
      if (!outcome.is_caught)
        result.missed.push_back(concat(kind, " at line ", k + 1, ": ", pieces[k].substr(0, 80)));
    }
    std::cout << format_name << "  " << kind << ": " << caught << " of " << tried << " caught\n";
    result.tried += tried;
    result.caught += caught;
    result.first += first;
  }
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
