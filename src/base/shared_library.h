#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A library of the system's that is looked for when it is needed, so that Tenon runs without it.
class SharedLibrary {
 public:
  /// The first of `names` that can be loaded: as the system finds it, then in `folders`. Throws
  /// Error (Device), saying what it is for and what was tried.
  SharedLibrary(std::string_view purpose, const std::vector<std::string>& names,
                const std::vector<std::string>& folders = {});
  SharedLibrary(const SharedLibrary&) = delete;

  /// Throws Error (Device) if the library has no such function.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(address(name));
  }
  const std::string& name() const { return name_; }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;  // stays loaded: its threads may outlive us
  std::string name_;
};

/// Where NVIDIA's toolkit usually lies, and where CUDA_HOME says it does.
std::vector<std::string> cuda_folders();

}  // namespace tenon
