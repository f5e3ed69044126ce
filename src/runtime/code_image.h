#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

namespace tenon::inline runtime {

/// A minimal in-memory linker: loads a relocatable ELF object. Supports the few relocations of
/// position-independent code from Tenon's code generator, and refuses all others.
class CodeImage {
 public:
  /// Throws Error if the object cannot run on this machine.
  explicit CodeImage(std::span<const std::byte> object);
  CodeImage(CodeImage&& other) noexcept;
  CodeImage& operator=(CodeImage&& other) noexcept;
  ~CodeImage();

  /// Returns the function's address; throws Error if the name is unknown.
  void* function(const std::string& name) const;

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::unordered_map<std::string, void*> functions_;
};

}  // namespace tenon::inline runtime
