#pragma once

#include "base/error.h"
#include "program/extent.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline program {

/// Returns the error for a file whose bytes are not a valid program.
inline Error damaged(std::string_view what) {
  return Error("the program file is damaged").got(what).hint("compile the model again");
}

/// Serializes numbers and texts for a program's tables.
class BinaryWriter {
 public:
  void number(std::uint64_t value) {
    for (int k = 0; k < 8; ++k) bytes_ += static_cast<char>(value >> (8 * k));
  }
  void real(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    number(bits);
  }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }
  void extent(const Extent& value) {
    number(value.steps().size());
    for (const Extent::Instruction& step : value.steps()) {
      number(static_cast<std::uint64_t>(step.op));
      number(static_cast<std::uint64_t>(step.number));
    }
  }
  template <class T, class F>
  void list(const std::vector<T>& items, F write) {
    number(items.size());
    for (const T& item : items) write(item);
  }
  void numbers(const std::vector<std::uint32_t>& items) {
    list(items, [&](std::uint32_t item) { number(item); });
  }
  void extents(const std::vector<Extent>& items) {
    list(items, [&](const Extent& item) { extent(item); });
  }
  void bytes_of(std::span<const std::byte> value) {
    number(value.size());
    bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Deserializes them; refuses truncated input and ids out of range as damage.
class BinaryReader {
 public:
  explicit BinaryReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    if (bytes_.size() < 8) throw damaged("it ends inside its tables");
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data(), 8);
    bytes_ = bytes_.subspan(8);
    return value;
  }
  std::uint32_t small() { return id(std::size_t{1} << 32); }
  std::uint32_t id(std::size_t bound) {
    const std::uint64_t value = number();
    if (value >= bound) throw damaged("a number that nothing has");
    return static_cast<std::uint32_t>(value);
  }
  double real() {
    const std::uint64_t bits = number();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  std::size_t count(std::size_t least_bytes) {
    const std::uint64_t value = number();
    if (value > bytes_.size() / least_bytes) throw damaged("a list longer than the file");
    return value;
  }
  std::string text() {
    const std::size_t size = count(1);
    std::string value(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return value;
  }
  std::vector<std::byte> bytes() {
    const std::size_t size = count(1);
    std::vector<std::byte> value(bytes_.begin(),
                                 bytes_.begin() + static_cast<std::ptrdiff_t>(size));
    bytes_ = bytes_.subspan(size);
    return value;
  }
  Extent extent(std::size_t symbol_count) {
    const std::size_t size = count(16);
    std::vector<Extent::Instruction> steps;
    std::size_t depth = 0;
    for (std::size_t k = 0; k < size; ++k) {
      const std::uint64_t op = number();
      const auto value = static_cast<std::int64_t>(number());
      if (op > static_cast<std::uint64_t>(Extent::Op::Maximum))
        throw damaged("an unknown step of an extent");
      const auto kind = static_cast<Extent::Op>(op);
      if (kind == Extent::Op::Symbol &&
          (value < 0 || static_cast<std::uint64_t>(value) >= symbol_count)) {
        throw damaged("an extent of an unknown symbol");
      }
      const bool is_leaf = kind == Extent::Op::Number || kind == Extent::Op::Symbol;
      if (!is_leaf && depth < 2) throw damaged("an extent without operands");
      depth = is_leaf ? depth + 1 : depth - 1;
      steps.push_back({kind, value});
    }
    if (depth != 1) throw damaged("an extent that is not one number");
    return Extent::of(std::move(steps));
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tenon::inline program
