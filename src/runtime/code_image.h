#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

namespace tenon {

/// Machine code made runnable: a relocatable object file placed in memory and linked. Knows the few
/// relocations that position-independent code of our own compiler has, and refuses every other.
class CodeImage {
 public:
  /// Throws Error if the object is not one that can be run here.
  explicit CodeImage(std::span<const std::byte> object);
  CodeImage(CodeImage&& other) noexcept;
  CodeImage& operator=(CodeImage&& other) noexcept;
  ~CodeImage();

  /// The function's address; throws Error if there is none of that name.
  void* function(const std::string& name) const;

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::unordered_map<std::string, void*> functions_;
};

}  // namespace tenon
