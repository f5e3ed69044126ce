#include "base/error.h"
#include "embed/call.h"
#include "embed/loaded_program.h"
#include "embed/options.h"
#include "program/file.h"

#include <nlohmann/json.hpp>

#include <cstring>

using namespace tenon;         // NOLINT: C functions only
using namespace tenon::embed;  // NOLINT

namespace {

constexpr std::int64_t kMostThreads = 4096;
constexpr std::size_t kPage = 4096;

// Reads the options before any work starts.
int threads_of(const char* options) {
  Options given(options);
  const auto threads = static_cast<int>(given.integer("threads", 0, kMostThreads).value_or(0));
  given.finish();
  return threads;
}

std::span<const tenon_tensor> list(const tenon_tensor* tensors, std::size_t count) {
  if (count > 0) require(tensors, "tensors");
  return {tensors, count};
}
std::span<tenon_tensor> list(tenon_tensor* tensors, std::size_t count) {
  if (count > 0) require(tensors, "tensors");
  return {tensors, count};
}

}  // namespace

extern "C" {

tenon_status tenon_program_load(const char* path, tenon_program* program) {
  return call([&] {
    require(path, "path");
    require(program, "program");
    *program = programs().add(load(read_program(path)));
  });
}

tenon_status tenon_program_parse(const void* bytes, size_t size, tenon_program* program) {
  return call([&] {
    require(bytes, "bytes");
    require(program, "program");
    // Page-aligned, like constants in a mapped file.
    const std::shared_ptr<std::byte> copy(
        static_cast<std::byte*>(::operator new (size + 1, std::align_val_t{kPage})),
        [](std::byte* data) { ::operator delete (data, std::align_val_t{kPage}); });
    std::memcpy(copy.get(), bytes, size);
    *program = programs().add(load(parse_program({copy.get(), size}, copy)));
  });
}

tenon_status tenon_program_self(tenon_program* program) {
  return call([&] {
    require(program, "program");
    *program = programs().add(load(read_embedded_program()));
  });
}

tenon_status tenon_program_describe(tenon_program program, char** json) {
  return call([&] {
    require(json, "json");
    *json = text_for_caller(programs().find(program)->description());
  });
}

tenon_status tenon_program_port_count(tenon_program program, int32_t kind, size_t* count) {
  return call([&] {
    require(count, "count");
    *count = programs().find(program)->ports(kind).size();
  });
}

tenon_status tenon_program_port(tenon_program program, int32_t kind, size_t index,
                                tenon_port* port) {
  return call([&] {
    require(port, "port");
    const auto found = programs().find(program);
    const std::vector<ProgramPort>& ports = found->ports(kind);
    if (index >= ports.size()) {
      throw Error("there is no such port", ErrorKind::Usage)
          .expected("less than ", ports.size())
          .got(index);
    }
    const ProgramPort& one = ports[index];
    *port = {one.name.c_str(), one.type.c_str(), one.shape.data(),
             one.has_rank ? static_cast<std::int32_t>(one.shape.size()) : -1, one.dtype};
  });
}

tenon_status tenon_program_set_weight(tenon_program program, const char* name,
                                      const tenon_tensor* elements) {
  return call([&] {
    require(name, "name");
    require(elements, "elements");
    programs().find(program)->set_weight(name, *elements);
  });
}

tenon_status tenon_program_free(tenon_program program) {
  return call([&] { programs().remove(program); });
}

tenon_status tenon_context_create(tenon_program program, const char* options,
                                  tenon_context* context) {
  return call([&] {
    require(context, "context");
    const int threads = threads_of(options);
    *context = contexts().add(programs().find(program)->make_context(threads));
  });
}

tenon_status tenon_context_run(tenon_context context, const tenon_tensor* inputs,
                               size_t input_count, tenon_tensor* outputs, size_t output_count) {
  return call([&] {
    contexts().find(context)->run(list(inputs, input_count), list(outputs, output_count), nullptr);
  });
}

tenon_status tenon_context_start(tenon_context context, const tenon_tensor* inputs,
                                 size_t input_count, tenon_tensor* outputs, size_t output_count) {
  return call([&] {
    contexts().find(context)->start(list(inputs, input_count), list(outputs, output_count));
  });
}

tenon_status tenon_context_finish(tenon_context context) {
  return call([&] { contexts().find(context)->finish(); });
}

tenon_status tenon_context_bind(tenon_context context, const tenon_tensor* inputs,
                                size_t input_count, tenon_tensor* outputs, size_t output_count) {
  return call([&] {
    contexts().find(context)->bind(list(inputs, input_count), list(outputs, output_count));
  });
}

tenon_status tenon_context_watch(tenon_context context, const tenon_tensor* inputs,
                                 size_t input_count, tenon_tensor* outputs, size_t output_count,
                                 char** json) {
  return call([&] {
    require(json, "json");
    std::string watched;
    contexts().find(context)->run(list(inputs, input_count), list(outputs, output_count), &watched);
    *json = text_for_caller(watched);
  });
}

tenon_status tenon_context_describe(tenon_context context, char** json) {
  return call([&] {
    require(json, "json");
    *json = text_for_caller(contexts().find(context)->describe());
  });
}

tenon_status tenon_context_read_state(tenon_context context, const char* name,
                                      tenon_tensor* elements) {
  return call([&] {
    require(name, "name");
    require(elements, "elements");
    contexts().find(context)->read_state(name, *elements);
  });
}

tenon_status tenon_context_write_state(tenon_context context, const char* name,
                                       const tenon_tensor* elements) {
  return call([&] {
    require(name, "name");
    require(elements, "elements");
    contexts().find(context)->write_state(name, *elements);
  });
}

tenon_status tenon_context_bind_state(tenon_context context, const char* name,
                                      const tenon_tensor* elements) {
  return call([&] {
    require(name, "name");
    require(elements, "elements");
    contexts().find(context)->bind_state(name, *elements);
  });
}

tenon_status tenon_context_reset_states(tenon_context context) {
  return call([&] { contexts().find(context)->reset_states(); });
}

tenon_status tenon_context_fork(tenon_context context, tenon_context* fork) {
  return call([&] {
    require(fork, "fork");
    *fork = contexts().add(contexts().find(context)->fork());
  });
}

tenon_status tenon_context_free(tenon_context context) {
  return call([&] { contexts().remove(context); });
}
}
