#include "base/error.h"
#include "base/text.h"
#include "passes/definition/pass.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace tenon::passes {
namespace {

struct PassOption {
  std::string name;
  std::function<void(PassOptions&, std::string_view value)> set;
};

PassOption word(std::string name, std::string PassOptions::*field, std::vector<std::string> words) {
  return {name, [name, field, words](PassOptions& options, std::string_view value) {
            if (std::ranges::find(words, value) == words.end()) {
              throw Error(concat("option '", name, "' cannot be '", value, "'"), ErrorKind::Usage)
                  .expected("one of ", join(words, ", "));
            }
            // The first word is the default.
            options.*field = value == words.front() ? "" : std::string(value);
          }};
}

template <class Integer>
PassOption number(std::string name, Integer PassOptions::*field) {
  return {name, [name, field](PassOptions& options, std::string_view value) {
            const std::optional<std::int64_t> parsed = parse_integer(value);
            if (!parsed || *parsed < 0) {
              throw Error(concat("option '", name, "' cannot be '", value, "'"), ErrorKind::Usage)
                  .expected("a number from 0");
            }
            options.*field = static_cast<Integer>(*parsed);
          }};
}

PassOption flag(std::string name, bool QuantizePartitionOptions::*field) {
  return {name, [name, field](PassOptions& options, std::string_view value) {
            if (value != "true" && value != "false") {
              throw Error(concat("option '", name, "' cannot be '", value, "'"), ErrorKind::Usage)
                  .expected("true or false");
            }
            options.quantize_partition.*field = value == "true";
          }};
}

PassOption element(std::string name, DType QuantizePartitionOptions::*field) {
  return {name, [name, field](PassOptions& options, std::string_view value) {
            const std::optional<DType> dtype = parse_dtype(value);
            if (!dtype) {
              throw Error(concat("option '", name, "' cannot be '", value, "'"), ErrorKind::Usage)
                  .expected("an element type, as i8");
            }
            options.quantize_partition.*field = *dtype;
          }};
}

const std::vector<PassOption>& known_options() {
  static const std::vector<PassOption> all = {
      word("assign-precision.to", &PassOptions::assign_precision_to, {"f16", "bf16"}),
      word("choose-layouts.mode", &PassOptions::layout_mode, {"cpu", "tensorflow", "none"}),
      word("choose-layouts.to", &PassOptions::layout_to, {"NHWC", "NCHW"}),
      number("fold-constants.max-bytes", &PassOptions::max_constant_bytes),
      number("fuse.max-depth", &PassOptions::fuse_max_depth),
      word("fuse.mode", &PassOptions::fuse_mode, {"bytes", "relay"}),
      word("order.mode", &PassOptions::order_mode, {"least-peak", "megengine"}),
      flag("quantize-partition.close-outputs", &QuantizePartitionOptions::close_outputs),
      element("quantize-partition.dtype", &QuantizePartitionOptions::dtype),
      flag("quantize-partition.multiply-right", &QuantizePartitionOptions::multiply_right),
      flag("quantize-partition.share", &QuantizePartitionOptions::share),
  };
  return all;
}

}  // namespace

void set_option(PassOptions& options, std::string_view setting) {
  const std::size_t mark = setting.find('=');
  if (mark == std::string_view::npos) {
    throw Error(concat("'", setting, "' sets no option"), ErrorKind::Usage)
        .expected("PASS.OPTION=VALUE");
  }
  const std::string_view name = trim(setting.substr(0, mark));
  std::vector<std::string> names;
  for (const PassOption& option : known_options()) {
    if (option.name == name) return option.set(options, trim(setting.substr(mark + 1)));
    names.push_back(option.name);
  }
  throw Error(concat("no option is called '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name, names));
}

}  // namespace tenon::passes
