#include "cli/table.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "base/text.h"

namespace tenon::cli {
namespace {

// Columns a terminal needs: code points, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

constexpr std::size_t kTextWidth = 110;

// Lines no longer than people like to read; those that are short already stay.
void print_wrapped(const std::string& text, std::ostream& out) {
  for (const std::string& paragraph : split(text, '\n')) {
    std::string line;
    for (const std::string& word : split(paragraph, ' ')) {
      if (!line.empty() && width_of(line) + 1 + width_of(word) > kTextWidth) {
        out << line << "\n";
        line = word;
      } else {
        line += line.empty() ? word : " " + word;
      }
    }
    out << line << "\n";
  }
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    is_right_.push_back(!title.empty() && title.front() == '>');
    if (is_right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> row) {
  row.resize(titles_.size());
  rows_.push_back(std::move(row));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (std::size_t k = 0; k < titles_.size(); ++k) {
    std::size_t width = width_of(titles_[k]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[k]));
    widths.push_back(width);
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t k = 0; k < row.size(); ++k) {
      const std::string padding(widths[k] - width_of(row[k]), ' ');
      if (k > 0) line += "  ";
      line += is_right_[k] ? padding + row[k] : row[k] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  print_row(titles_);
  std::vector<std::string> rule;
  for (std::size_t width : widths) rule.emplace_back(width, '-');
  print_row(rule);
  for (const auto& row : rows_) print_row(row);
}

void print_page(const Page& page, std::ostream& out) {
  out << page.title << "\n";
  for (const Page::Section& section : page.sections) {
    out << "\n";
    if (!section.heading.empty()) {
      out << section.heading << "\n" << std::string(width_of(section.heading), '=') << "\n";
    }
    if (!section.text.empty()) print_wrapped(section.text, out);
    if (section.columns.empty()) continue;
    if (!section.text.empty()) out << "\n";
    Table table(section.columns);
    for (const auto& row : section.rows) table.add(row);
    table.print(out);
  }
}

Progress::Progress(std::string what) : what_(std::move(what)), is_shown_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_shown_ && last_percent_ != static_cast<std::size_t>(-1)) std::cerr << "\r\033[K" << std::flush;
}

void Progress::update(std::size_t done, std::size_t total) {
  if (!is_shown_ || total == 0) return;
  const std::size_t percent = done * 100 / total;
  if (percent == last_percent_) return;
  last_percent_ = percent;
  std::cerr << "\r\033[K" << what_ << " " << done << "/" << total << " (" << percent << " %)" << std::flush;
}

}  // namespace tenon::cli
