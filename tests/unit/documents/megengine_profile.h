#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// Builds small profiles for tests with the members that the reader requires.
class MegengineProfile {
 public:
  using Ids = std::vector<std::int64_t>;

  /// Adds an operator with one result and returns the result's number. `shape` is its inferred
  /// shape, "" for null; `param` is JSON.
  std::int64_t add(const std::string& type, const Ids& inputs, const std::string& shape,
                   const std::string& param = "{ }", const std::string& name = "");
  std::int64_t input(const std::string& shape) {
    return add("Host2DeviceCopy", {}, shape, "{ }", "x" + std::to_string(next_));
  }
  /// Numbers that the host reads, not executed: "[2, -1]".
  std::int64_t host(const std::string& shape, const std::string& values);
  std::string text() const;

 private:
  void put(std::int64_t id, const std::string& type, const std::string& name, const Ids& inputs,
           const std::string& shape, const std::string& value);

  std::int64_t next_ = 0;
  std::string operators_, vars_, footprints_, sequence_;
};

}  // namespace tenon
