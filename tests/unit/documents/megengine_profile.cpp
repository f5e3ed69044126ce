#include "unit/documents/megengine_profile.h"

namespace tenon {
namespace {

std::string quoted(std::int64_t number) { return "\"" + std::to_string(number) + "\""; }
std::string comma(const std::string& list) { return list.empty() ? "" : ", "; }

}  // namespace

void MegengineProfile::put(std::int64_t id, const std::string& type, const std::string& name,
                           const Ids& inputs, const std::string& shape, const std::string& value) {
  std::string read;
  for (std::int64_t input : inputs) read += comma(read) + quoted(input);
  operators_ += comma(operators_) + quoted(id) + ": {\"id\": " + quoted(id) + ", \"name\": \"" +
                name + "\", \"type\": \"" + type + "\", \"input\": [" + read + "], \"output\": [" +
                quoted(id + 1) + "]}";
  vars_ += comma(vars_) + quoted(id + 1) + ": {\"id\": " + quoted(id + 1) + ", \"name\": \"" +
           name + "\", \"static_infer_tags\": {\"SHAPE\": {\"inferred_result\": " +
           (shape.empty() ? "null" : shape) + "}, \"VALUE\": {\"inferred_result\": " + value +
           "}}}";
}

std::int64_t MegengineProfile::add(const std::string& type, const Ids& inputs,
                                   const std::string& shape, const std::string& param,
                                   const std::string& name) {
  const std::int64_t id = next_;
  next_ += 2;
  put(id, type, name.empty() ? "op" + std::to_string(id) : name, inputs, shape, "null");
  sequence_ += comma(sequence_) + quoted(id);
  if (!param.empty()) {
    footprints_ += comma(footprints_) + quoted(id) +
                   ": {\"memory\": 0, \"in_shapes\": [], \"out_shapes\": [], \"param\": " + param +
                   "}";
  }
  return id + 1;
}

std::int64_t MegengineProfile::host(const std::string& shape, const std::string& values) {
  const std::int64_t id = next_;
  next_ += 2;
  put(id, "ImmutableTensor", "host" + std::to_string(id), {}, shape, values);
  return id + 1;
}

std::string MegengineProfile::text() const {
  return "{\"profiler\": {\"opr_footprint\": {" + footprints_ +
         "}}, \"graph_exec\": {\"comp_seq\": [" + sequence_ + "], \"operator\": {" + operators_ +
         "}, \"var\": {" + vars_ + "}}}";
}

}  // namespace tenon
