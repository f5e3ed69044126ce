#include "cli/table.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/out.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace tenon::cli {
namespace {

// Returns the terminal columns of a text: code points, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

constexpr std::size_t kTextWidth = 110;

// Splits a text after `columns` characters.
std::pair<std::string, std::string> cut(const std::string& text, std::size_t columns) {
  std::size_t at = 0;
  while (at < text.size() && width_of(text.substr(0, at + 1)) <= columns) ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  return {text.substr(0, at), text.substr(at)};
}

// Wraps a paragraph between words; within a word only if `breaks_words` is set and it is too long
// for a line.
std::vector<std::string> wrapped(const std::string& paragraph, std::size_t columns,
                                 bool breaks_words) {
  std::vector<std::string> lines;
  std::string line;
  for (std::string word : split(paragraph, ' ')) {
    if (!line.empty() && width_of(line) + 1 + width_of(word) > columns) {
      lines.push_back(std::move(line));
      line.clear();
    } else if (!line.empty()) {
      line += " ";
    }
    for (; breaks_words && line.empty() && width_of(word) > columns;) {
      auto [first, rest] = cut(word, columns);
      lines.push_back(std::move(first));
      word = std::move(rest);
    }
    line += word;
  }
  lines.push_back(std::move(line));
  return lines;
}

// Wraps lines to a readable length; keeps short ones.
void print_wrapped(const std::string& text, std::ostream& out) {
  for (const std::string& paragraph : split(text, '\n')) {
    for (const std::string& line : wrapped(paragraph, kTextWidth, false)) out << line << "\n";
  }
}

constexpr std::size_t kLeastColumn = 12, kGap = 2;

// Returns the width of the terminal that a stream writes to; 0 if it is not a terminal.
std::size_t terminal_columns(const std::ostream& out) {
  const int file = &out == &std::cout ? STDOUT_FILENO : &out == &std::cerr ? STDERR_FILENO : -1;
  winsize size{};
  if (file < 0 || isatty(file) == 0 || ioctl(file, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
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

// Keeps the columns that fit, at least one.
std::vector<std::size_t> Table::widths(std::size_t most_columns) const {
  std::vector<std::size_t> widths;
  std::size_t total = 0, least = 0;
  for (std::size_t k = 0; k < titles_.size(); ++k) {
    std::size_t width = width_of(titles_[k]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[k]));
    const std::size_t gap = k > 0 ? kGap : 0;
    least += gap + (may_shrink(k, width) ? std::max(kLeastColumn, width_of(titles_[k])) : width);
    if (most_columns > 0 && k > 0 && least > most_columns) break;
    widths.push_back(width);
    total += width + gap;
  }
  // Shrinks the widest text column to the width of the next one.
  while (most_columns > 0 && total > most_columns) {
    std::size_t widest = widths.size();
    for (std::size_t k = 0; k < widths.size(); ++k) {
      if (may_shrink(k, widths[k]) && (widest == widths.size() || widths[k] > widths[widest]))
        widest = k;
    }
    if (widest == widths.size()) break;
    --widths[widest];
    --total;
  }
  return widths;
}

bool Table::may_shrink(std::size_t column, std::size_t width) const {
  return !is_right_[column] && width > std::max(kLeastColumn, width_of(titles_[column]));
}

void Table::print(std::ostream& out) const { print(out, terminal_columns(out)); }

void Table::print(std::ostream& out, std::size_t most_columns) const {
  const std::vector<std::size_t> widths = this->widths(most_columns);
  const auto print_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t k = 0; k < widths.size(); ++k) {
      const std::string padding(widths[k] - width_of(cells[k]), ' ');
      if (k > 0) line += std::string(kGap, ' ');
      line += is_right_[k] ? padding + cells[k] : cells[k] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  print_line(titles_);
  std::vector<std::string> rule;
  for (std::size_t width : widths) rule.emplace_back(width, '-');
  print_line(rule);
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t line_count = 1;
    for (std::size_t k = 0; k < widths.size(); ++k) {
      const bool fits = width_of(row[k]) <= widths[k];
      cells.push_back(fits ? std::vector<std::string>{row[k]} : wrapped(row[k], widths[k], true));
      line_count = std::max(line_count, cells.back().size());
    }
    for (std::size_t line = 0; line < line_count; ++line) {
      std::vector<std::string> pieces;
      for (const auto& cell : cells) pieces.push_back(line < cell.size() ? cell[line] : "");
      print_line(pieces);
    }
  }
  if (widths.size() == titles_.size()) return;
  const std::vector<std::string> left_out(
      titles_.begin() + static_cast<std::ptrdiff_t>(widths.size()), titles_.end());
  const std::string note =
      concat("left out, for the terminal is too narrow: ", join(left_out, ", "));
  for (const std::string& line : wrapped(note, most_columns, false)) out << line << "\n";
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
    for (const auto& row : section.rows) {
      std::vector<std::string> texts;
      for (const Page::Cell& cell : row) texts.push_back(cell.text);
      table.add(std::move(texts));
    }
    table.print(out);
  }
}

Progress::Progress(std::string what)
    : what_(std::move(what)), is_shown_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_shown_ && last_percent_ != static_cast<std::size_t>(-1)) err() << "\r\033[K" << std::flush;
}

void Progress::update(std::size_t done, std::size_t total) {
  if (!is_shown_ || total == 0) return;
  const std::size_t percent = done * 100 / total;
  if (percent == last_percent_) return;
  last_percent_ = percent;
  err() << "\r\033[K" << what_ << " " << done << "/" << total << " (" << percent << " %)"
        << std::flush;
}

}  // namespace tenon::cli
