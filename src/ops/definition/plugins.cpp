#include "ops/definition/plugins.h"

#include "base/error.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <set>

namespace tenon::inline ops {
namespace {

// Shared objects are loaded once per process, and so are their operators.
struct Loaded {
  std::mutex mutex;
  std::map<std::string, const tenon_custom_op*, std::less<>> ops;
  std::set<void*> libraries;
};
Loaded& loaded() {
  static Loaded all;
  return all;
}

Error no_plugin(const std::string& path, std::string_view why) {
  return Error("this is no plug-in", ErrorKind::Usage)
      .at(path)
      .expected("a shared object that exports tenon_plugin_v1 (include/tenon/plugin.h)")
      .got(why);
}

}  // namespace

std::string custom_op_name(std::string_view domain, std::string_view name) {
  return domain.empty() || domain == "ai.onnx" ? std::string(name) : concat(domain, ".", name);
}

void load_plugin(const std::string& path) {
  // dlopen searches the system's library path for a bare name.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw no_plugin(path, dlerror());
  const std::scoped_lock lock(loaded().mutex);
  if (!loaded().libraries.insert(library).second) {
    dlclose(library);  // keeps one reference
    return;
  }
  const auto refuse = [&](std::string_view why) {
    loaded().libraries.erase(library);
    dlclose(library);
    return no_plugin(path, why);
  };
  const auto describe =
      reinterpret_cast<decltype(&tenon_plugin_v1)>(dlsym(library, "tenon_plugin_v1"));
  const tenon_plugin* plugin = describe == nullptr ? nullptr : describe();
  if (plugin == nullptr) throw refuse("nothing of that name");
  std::map<std::string, const tenon_custom_op*, std::less<>> found;
  for (std::size_t k = 0; k < plugin->op_count; ++k) {
    const tenon_custom_op& op = plugin->ops[k];
    if (op.name == nullptr || op.infer == nullptr || op.compute == nullptr)
      throw refuse("an operator without a name or a function");
    const std::string name = custom_op_name(op.domain == nullptr ? "" : op.domain, op.name);
    if (loaded().ops.contains(name) || !found.emplace(name, &op).second)
      throw refuse(concat("operator '", name, "', which is there already"));
  }
  loaded().ops.merge(found);
}

const tenon_custom_op* find_custom_op(std::string_view name) {
  const std::scoped_lock lock(loaded().mutex);
  const auto found = loaded().ops.find(name);
  return found == loaded().ops.end() ? nullptr : found->second;
}

}  // namespace tenon::inline ops
