#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/file.h"
#include "program/target.h"
#include "program/text.h"
#include "program/verify.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "unit/error_text.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

namespace tenon::file_test {
namespace {

// A symbol, weights of more than one page, a value between steps.
constexpr const char* kNet = R"(graph net (x: f32[n, 40]) {
  w = constant f32[40, 48] normal(seed = 1, mean = 0.0, deviation = 0.3)
  h = matmul(x, w)
  y = softmax(h) {axis = 0}
  v = constant f32[8, 40] normal(seed = 2, mean = 0.0, deviation = 0.3)
  t = constant f32[48, 5] normal(seed = 3, mean = 0.0, deviation = 0.3)
  u, z = fused(v, w, t) group = graph (p: f32[8, 40], q: f32[40, 48], o: f32[48, 5]) {
    r = matmul(p, q)
    s = matmul(r, o)
    return r, s
  }
  return y, z
}
)";

class ProgramFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "file_test_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".tnn";
    program_ = codegen::compile(parse_graph(kNet, all_ops()), options()).program;
    write_program(program_, path_);
    std::ifstream stream(path_, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    bytes_ = std::move(text).str();
  }
  void TearDown() override { std::remove(path_.c_str()); }
  static codegen::CompileOptions options() {
    codegen::CompileOptions options = driver::cpu_options("x86-64-v3");
    return options;
  }
  void put(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  static Program parse(const std::string& bytes) {
    return parse_program(std::as_bytes(std::span(bytes)), nullptr);
  }
  std::size_t constants_begin() const { return bytes_.size() - program_.constant_bytes; }
  static Tensor input() {
    Tensor x(DType::F32, {3, 40});
    for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, 0.1 * static_cast<double>(k % 7));
    return x;
  }

  std::string path_, bytes_;
  Program program_;
};

TEST_F(ProgramFile, RunsLikeTheProgram) {
  CompiledModel fresh(program_, 1), loaded(read_program(path_), 2);
  const std::vector<Datum> a = fresh.run({input()}), b = loaded.run({input()});
  ASSERT_EQ(a.size(), 2u);
  for (std::size_t k = 0; k < a.size(); ++k)
    EXPECT_TRUE(identical(a[k].tensor(), b[k].tensor())) << k;
}

TEST_F(ProgramFile, KeepsItsSteps) {
  const Program read = read_program(path_);
  ASSERT_EQ(read.steps.size(), program_.steps.size());
  const std::vector<std::int64_t> symbols{3};
  for (std::size_t k = 0; k < read.steps.size(); ++k) {
    const Program::Step &a = read.steps[k], &b = program_.steps[k];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.buffers, b.buffers);
    EXPECT_EQ(a.extents.size(), b.extents.size());
    EXPECT_EQ(a.work.value(symbols), b.work.value(symbols));
    EXPECT_EQ(a.candidate, b.candidate);
  }
}

TEST_F(ProgramFile, KeepsHowKernelsReadMatrices) {
  Program::Kernel& kernel = program_.kernels.front();
  kernel.shared_bytes = 197632;
  kernel.maps = {{0, Extent::symbol(0), {24, 7}, {32, 224}, {64, 4, 1}, {1, 2, 1}}};
  kernel.cluster = 4;
  write_program(program_, path_);
  const Program read = read_program(path_), parsed = parse_program_text(to_string(program_));
  for (const Program* made : {&read, &parsed}) {
    EXPECT_EQ(made->kernels.front().shared_bytes, 197632u);
    EXPECT_EQ(made->kernels.front().maps, kernel.maps);
    EXPECT_EQ(made->kernels.front().cluster, 4u);
  }
  const Program::TensorMap sound = kernel.maps.front();
  const auto expect_refused = [&](const char* what, const auto& change) {
    Program::TensorMap& map = kernel.maps.front() = sound;
    change(map);
    EXPECT_THROW(verify(program_), Error) << what;
  };
  expect_refused("no such buffer", [](auto& map) { map.buffer = 99; });
  expect_refused("no axis inside", [](auto& map) { map = {0, map.rows, {}, {}, {64}, {1}}; });
  expect_refused("axes of no pitch", [](auto& map) { map.pitches.pop_back(); });
  expect_refused("rows that overlap", [](auto& map) { map.pitches[0] = 23; });
  expect_refused("planes that overlap", [](auto& map) { map.pitches[1] = 223; });
  expect_refused("an extent beyond counting",
                 [](auto& map) { map.extents[1] = ~std::uint64_t{0}; });
  expect_refused("an empty box", [](auto& map) { map.box[2] = 0; });
  expect_refused("steps too wide", [](auto& map) { map.steps[1] = 9; });
  expect_refused("a box too large", [](auto& map) { map.box[1] = 257; });
  expect_refused("a window over no images", [](auto& map) { map.before = map.places = {1, 1}; });
  kernel.maps = {
      {0, 2, {64, 9, 7}, {64, 576, 4032}, {64, 128, 1, 1}, {1, 2, 1, 1}, {1, 0}, {5, 6}}};
  EXPECT_EQ(parse_program_text(to_string(program_)).kernels.front().maps, kernel.maps);
  write_program(program_, path_);
  EXPECT_EQ(read_program(path_).kernels.front().maps, kernel.maps);
  const Program::TensorMap window = kernel.maps.front();
  for (const auto& [before, places] : {std::pair(129U, 5U), {1U, 0U}, {1U, 99U}}) {
    kernel.maps.front() = window;
    kernel.maps.front().before[0] = before;
    kernel.maps.front().places[0] = places;
    EXPECT_THROW(verify(program_), Error) << before << " " << places;
  }
}

TEST_F(ProgramFile, RefusesTruncatedFiles) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    EXPECT_THROW(parse(bytes_.substr(0, size)), Error) << size;
  }
  put(bytes_.substr(0, bytes_.size() - 1));
  EXPECT_THROW(read_program(path_), Error);
  EXPECT_THROW(parse(bytes_ + '\0'), Error);
}

TEST_F(ProgramFile, RefusesAlteredTablesAndCode) {
  for (std::size_t at = 0; at < constants_begin(); ++at) {
    std::string altered = bytes_;
    altered[at] = static_cast<char>(altered[at] ^ (1 << at % 8));
    EXPECT_THROW(parse(altered), Error) << at;
  }
}

TEST_F(ProgramFile, RefusesAlteredConstantsAtFirstUse) {
  ASSERT_GT(program_.constant_bytes, 4096U);
  for (std::size_t at = constants_begin(); at < bytes_.size(); at += 41) {
    std::string altered = bytes_;
    altered[at] = static_cast<char>(altered[at] ^ (1 << at % 8));
    put(altered);
    CompiledModel model(read_program(path_), 2);
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        model.run({input()});
        FAIL() << "ran with byte " << at << " altered";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
        EXPECT_STREQ(error.what(),
                     "the program file is damaged\n  at        program 'net', step 'matmul h'\n  "
                     "got       altered constants\n"
                     "  hint      compile the model again");
      }
    }
  }
}

TEST_F(ProgramFile, ChecksDependentInputExtents) {
  const char* text =
      "graph (a: f32[2*n + 1, 3], b: f32[n]) {\n  y = neg(a)\n  z = exp(b)\n  return y, z\n}\n";
  const Graph graph = parse_graph(text, all_ops());
  write_program(codegen::compile(graph, options()).program, path_);
  const Graph ports = input_ports(read_program(path_));
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(to_string(ports.value(ports.inputs()[k]).type),
              to_string(graph.value(graph.inputs()[k]).type));
  }
}

// An unused buffer, larger than all others, must not take memory.
TEST_F(ProgramFile, UnusedBuffersTakeNoMemory) {
  Program::Buffer unused = program_.buffers.back();
  unused.dims = {1 << 20};
  for (const Program::BufferKind place :
       {Program::BufferKind::Constant, Program::BufferKind::Arena}) {
    unused.place = place;
    program_.buffers.push_back(unused);
  }
  write_program(program_, path_);
  CompiledModel loaded(read_program(path_), 1);
  EXPECT_EQ(loaded.run({input()}).size(), 2u);
}

// Kilobytes of a file that are resident in this process.
std::size_t resident_kilobytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t total = 0;
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") != std::string::npos && line.find(":") > line.find(" "))
      is_inside = line.ends_with(path);
    if (is_inside && line.starts_with("Rss:")) total += std::stoul(line.substr(4));
  }
  return total;
}

// Lookups read a few rows of a table; comparing it with its checksum reads all of it, once.
TEST_F(ProgramFile, TablesAreEvictedAfterTheChecksum) {
  const char* text = R"(graph net (i: i64[2], x: f32[2, 64]) {
  table = constant f32[131072, 64] normal(seed = 1, mean = 0.0, deviation = 0.3)
  both = constant f32[8, 64] normal(seed = 2, mean = 0.0, deviation = 0.3)
  w = constant f32[64, 64] normal(seed = 3, mean = 0.0, deviation = 0.3)
  rows = gather(table, i) {axis = 0}
  more = gather(both, i) {axis = 0}
  added = add(rows, more)
  moved = add(added, x)
  h = matmul(moved, w)
  s = reduce_sum(both) {axes = [0]}
  return h, s
}
)";
  const Graph graph = parse_graph(text, all_ops());
  write_program(codegen::compile(graph, options()).program, path_);
  Program program = read_program(path_);
  std::size_t tables = 0;
  for (const Program::Buffer& buffer : program.buffers) {
    if (!buffer.is_looked_up) continue;
    EXPECT_EQ(buffer.name, "table");
    ++tables;
  }
  EXPECT_EQ(tables, 1u);

  CompiledModel model(std::move(program), 2);
  EXPECT_LT(resident_kilobytes(path_), 4096u);
  const std::vector<Datum> inputs = {Tensor::of_integers(std::vector<std::int64_t>{3, 5}),
                                     Tensor(DType::F32, {2, 64})};
  for (int run = 0; run < 2; ++run) {
    const std::vector<Datum> expected = reference::evaluate(graph, inputs),
                             actual = model.run(inputs);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_TRUE(testing::compare(actual[k], expected[k], {1e-5, 1e-6}).is_equal) << k;
    EXPECT_GT(resident_kilobytes(path_), 0u);
    EXPECT_LT(resident_kilobytes(path_), 16384u) << "of 32768 in the table";
  }
}

// Tables and code may be arbitrary under a valid checksum. An accepted file is consistent, so that
// a model and a context can be built from it or refuse it.
TEST_F(ProgramFile, SealedMutationsAreConsistentOrRefused) {
  std::mt19937 random(11);
  int accepted = 0, refused = 0;
  for (std::size_t round = 0; round < 6000; ++round) {
    std::string altered = bytes_.substr(0, constants_begin());
    const std::size_t changes = 1 + random() % 3;
    for (std::size_t k = 0; k < changes; ++k) {
      // Past the header, whose numbers seal_program needs.
      const std::size_t at = 48 + random() % (altered.size() - 48);
      if (random() % 2 == 0) {
        altered[at] = static_cast<char>(random());
      } else {
        const std::uint64_t extremes[] = {
            0, 1, 2, 7, 255, 4096, 1ULL << 31, 1ULL << 32, 1ULL << 62, 1ULL << 63, ~0ULL};
        const std::uint64_t value = extremes[random() % std::size(extremes)];
        std::memcpy(altered.data() + at, &value, std::min<std::size_t>(8, altered.size() - at));
      }
    }
    altered += bytes_.substr(constants_begin());
    seal_program(std::as_writable_bytes(std::span(altered)));
    try {
      Program program = parse(altered);
      verify(program);
      std::vector<std::int64_t> least;
      for (const Program::Symbol& symbol : program.symbols) least.push_back(symbol.lo);
      std::vector<std::vector<std::int64_t>> shapes;
      for (const std::uint32_t id : program.inputs) {
        auto& shape = shapes.emplace_back();
        for (const Extent& dim : program.buffers[id].dims) shape.push_back(dim.value(least));
      }
      Executor context(std::make_shared<const Executable>(std::move(program)), 1);
      context.bind(shapes);
      ++accepted;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 0);  // some changes are undetectable: constants in the code, names
  EXPECT_GT(refused, 1000);
}

// Code may refer to its own image and to imported functions only.
TEST_F(ProgramFile, RefusesRelocationsOutsideTheCode) {
  const auto header = [&] { return reinterpret_cast<const Elf64_Ehdr*>(program_.code.data()); };
  std::vector<std::size_t> entries;  // offsets in the code
  for (std::size_t k = 0; k < header()->e_shnum; ++k) {
    const auto* section =
        reinterpret_cast<const Elf64_Shdr*>(program_.code.data() + header()->e_shoff) + k;
    if (section->sh_type != SHT_RELA) continue;
    for (std::size_t at = 0; at < section->sh_size; at += sizeof(Elf64_Rela))
      entries.push_back(section->sh_offset + at);
  }
  ASSERT_FALSE(entries.empty());
  EXPECT_NO_THROW(Executable{program_});
  int refused = 0;
  for (const std::size_t entry : entries) {
    for (const std::int64_t addend : {std::int64_t{1} << 20, -(std::int64_t{1} << 20)}) {
      Program program = program_;
      reinterpret_cast<Elf64_Rela*>(program.code.data() + entry)->r_addend = addend;
      refused += error_text([&] {
                   Executable model(std::move(program));
                 }).find("an address outside") != std::string::npos;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(ProgramFile, RefusesOtherVersions) {
  std::string other = bytes_;
  other[7] = '1';
  put(other);
  EXPECT_TRUE(starts_like_program(std::as_bytes(std::span(other))));
  try {
    read_program(path_);
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              concat("the program has another version of the format\n  at        ", path_,
                     "\n  expected  version F\n  got       version 1\n  hint      compile the "
                     "model again"));
  }
}

// A fuzzer with seeds of another version stops at the version check; fuzz/program.cpp describes how
// to regenerate them.
TEST(ProgramSeeds, HaveThisVersion) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/program")) {
    EXPECT_NO_THROW(read_program(entry.path().string())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST_F(ProgramFile, MissingFileIsAUsageError) {
  try {
    read_program(path_ + ".none");
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
  }
}

TEST_F(ProgramFile, RefusesMissingProcessorFeatures) {
  // A processor with all features except one.
  const std::vector<std::string_view> all = {"AVX2",      "FMA",       "F16C",      "BMI",
                                             "BMI2",      "LZCNT",     "MOVBE",     "AVX-512F",
                                             "AVX-512BW", "AVX-512CD", "AVX-512DQ", "AVX-512VL"};
  program_.target = "x86-64-v4";
  EXPECT_NO_THROW(require_target(program_, all));
  for (const std::string_view missing : all) {
    std::vector<std::string_view> rest = all;
    std::erase(rest, missing);
    try {
      require_target(program_, rest);
      FAIL() << "it was let through without " << missing;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Device);
      EXPECT_EQ(std::string(error.what()),
                concat("the program needs more than this processor has\n  expected  ", missing,
                       " (x86-64-v4)\n  hint      compile it with --cpu=native on this machine"));
    }
  }
  // An older processor with AVX2 and without later extensions.
  const std::vector<std::string_view> older(all.begin(), all.begin() + 7);
  program_.target = "x86-64-v3";
  EXPECT_NO_THROW(require_target(program_, older));
}

TEST_F(ProgramFile, LoadRefusesUnknownProcessors) {
  program_.target = "x86-64-v9";
  write_program(program_, path_);
  try {
    Executable model(read_program(path_));
    FAIL() << "it was let through";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Device);
    EXPECT_NE(std::string(error.what()).find("x86-64-v9"), std::string::npos);
  }
}

TEST_F(ProgramFile, CompileRefusesUnknownProcessors) {
  try {
    codegen::compile(parse_graph(kNet, all_ops()), driver::cpu_options("x86-64-v5"));
    FAIL() << "it was compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_STREQ(error.what(),
                 "no target is called 'x86-64-v5'\n  hint      did you mean 'x86-64-v3'?");
  }
}

// Each of these faults would make a run access memory out of bounds.
TEST_F(ProgramFile, RefusesInconsistentProgramsByName) {
  EXPECT_NO_THROW(verify(program_));
  const auto expect_refusal = [&](const char* part, const auto& spoil) {
    Program program = program_;
    spoil(program);
    try {
      verify(program);
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  // Returns a buffer that a step uses.
  const auto buffer = [](Program& program, Program::BufferKind place) -> Program::Buffer& {
    for (const Program::Step& step : program.steps) {
      for (const std::uint32_t id : step.buffers) {
        if (program.buffers[id].place == place) return program.buffers[id];
      }
    }
    throw std::out_of_range("no such buffer");
  };
  using BufferKind = Program::BufferKind;
  expect_refusal("ends outside the constants", [&](Program& p) {
    for (Program::Buffer& each : p.buffers)
      each.offset += each.place == BufferKind::Constant ? p.constant_bytes : 0;
  });
  expect_refusal("not aligned", [&](Program& p) {
    for (Program::Buffer& each : p.buffers)
      each.offset += each.place == BufferKind::Constant ? 4 : 0;
  });
  expect_refusal("its extents vary",
                 [&](Program& p) { buffer(p, BufferKind::Constant).dims = {Extent::symbol(0)}; });
  expect_refusal("negative extent",
                 [&](Program& p) { buffer(p, BufferKind::Constant).dims = {-4}; });
  expect_refusal("more bytes than can be counted", [&](Program& p) {
    buffer(p, BufferKind::Constant).dims = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  });
  expect_refusal("elements of 0 bytes",
                 [&](Program& p) { buffer(p, BufferKind::Output).element_bytes = 0; });
  expect_refusal("it ends outside the arena", [&](Program& p) {
    p.is_arena_planned = true;
    for (Program::Buffer& each : p.buffers) {
      if (each.place == BufferKind::Arena) each.dims = {8};
    }
  });
  expect_refusal("not alive then", [&](Program& p) {
    for (Program::Buffer& each : p.buffers) each.first_step = each.last_step = 1000;
  });
  expect_refusal("belongs to no input or output", [&](Program& p) {
    p.buffers.push_back(p.buffers[p.inputs[0]]);
    p.buffers.back().offset = 7;
    p.steps[0].buffers[0] = static_cast<std::uint32_t>(p.buffers.size() - 1);
  });
  expect_refusal("belongs to no input or output", [&](Program& p) {
    p.buffers.push_back(p.buffers[p.outputs[0]]);  // a second buffer of an output
    p.steps[0].buffers[0] = static_cast<std::uint32_t>(p.buffers.size() - 1);
  });
  expect_refusal("a buffer of another kind", [&](Program& p) { p.inputs = p.outputs; });
  expect_refusal("a buffer of another kind",
                 [&](Program& p) { std::swap(p.outputs[0], p.outputs[1]); });
  expect_refusal("a buffer that there is not", [&](Program& p) { p.steps[0].buffers[0] = 1000; });
  expect_refusal("a kernel that there is not", [&](Program& p) { p.steps[0].kernel = 1000; });
  expect_refusal("a symbol that there is not",
                 [&](Program& p) { p.steps[0].work = Extent::symbol(3); });
  expect_refusal("read from no value", [&](Program& p) { p.symbols[0].axis = 5; });
  expect_refusal("a range that has no number",
                 [&](Program& p) { p.symbols[0].lo = p.symbols[0].hi + 1; });
  expect_refusal("a symbol that there is not",
                 [&](Program& p) { p.steps[0].extents.push_back(Extent::symbol(3)); });
  expect_refusal("negative extent", [&](Program& p) { p.steps[0].work = -1; });
  expect_refusal("it ends outside the constants", [&](Program& p) {
    Program::Buffer outside = buffer(p, BufferKind::Constant);
    outside.offset = p.constant_bytes;
    p.buffers.push_back(outside);
    p.steps[0].buffers.front() = static_cast<std::uint32_t>(p.buffers.size() - 1);
  });
  expect_refusal("other operands than its kernel has elsewhere", [&](Program& p) {
    p.steps.push_back(p.steps.back());
    p.steps.back().extents.emplace_back(1);
    for (Program::Buffer& each : p.buffers) ++each.last_step;
  });
}

}  // namespace
}  // namespace tenon::file_test
