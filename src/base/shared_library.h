#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline base {

/// A shared library loaded on demand (dlopen), so that Tenon runs without it.
class SharedLibrary {
 public:
  /// Loads the first available of `names`: through the system's search path, then from `folders`.
  /// Throws Error (Device) with the purpose and the attempts.
  SharedLibrary(std::string_view purpose, const std::vector<std::string>& names,
                const std::vector<std::string>& folders = {});
  SharedLibrary(const SharedLibrary&) = delete;

  /// Throws Error (Device) if the library lacks the function.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name));
  }
  const std::string& name() const { return name_; }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;  // never unloaded: its threads may outlive this object
  std::string name_;
};

/// Usual folders of NVIDIA's toolkit, and that of CUDA_HOME.
std::vector<std::string> cuda_folders();

}  // namespace tenon::inline base
