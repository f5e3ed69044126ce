#include "codegen/cuda/multiply_template.h"

#include "base/error.h"
#include "base/text.h"

#include <vector>

namespace tenon::codegen::cuda {
namespace {

std::string numbered(const char* before, int count, const char* behind) {
  std::vector<std::string> list;
  for (int k = 0; k < count; ++k) list.push_back(concat(before, k, behind));
  return join(list, ", ");
}

// A type of numbers, and how many of them are summed over by one instruction.
struct Numbers {
  const char* format;
  const char* name;
  int depth;
  bool may_be_turned;
};

// A group's 128 threads have a sum of 64 rows in `columns` / 2 registers each.
std::string multiply(const Numbers& numbers, int columns) {
  const int sums = columns / 2;
  const std::string turned = numbers.may_be_turned ? concat(", 0, %", sums + 3) : "";
  return concat("template <", numbers.may_be_turned ? "bool TURNED" : "", "> struct Multiply<",
                numbers.format, ", ", columns, ", ", numbers.may_be_turned ? "TURNED" : "false",
                "> {\n", "  static FN void add(float* d, u64 a, u64 b, int adds) {\n",
                "    asm volatile(\"{\\n.reg .pred adds;\\nsetp.ne.b32 adds, %", sums + 2,
                ", 0;\\n\"\n", "      \"wgmma.mma_async.sync.aligned.m64n", columns, "k",
                numbers.depth, ".f32.", numbers.name, ".", numbers.name, " {",
                numbered("%", sums, ""), "}, %", sums, ", %", sums + 1, ", adds, 1, 1", turned,
                ";\\n}\"\n      : ", numbered("\"+f\"(d[", sums, "])"),
                "\n      : \"l\"(a), \"l\"(b), \"r\"(adds)",
                numbers.may_be_turned ? ", \"n\"(TURNED ? 1 : 0)" : "", ");\n  }\n};\n");
}

// The first factor in registers: four for 16 rows of a warp.
std::string multiply_rows(const Numbers& numbers, int columns) {
  const int sums = columns / 2;
  return concat(
      "template <> struct MultiplyRows<", numbers.format, ", ", columns, "> {\n",
      "  static FN void add(float* d, const u32* a, u64 b) {\n",
      "    asm volatile(\"wgmma.mma_async.sync.aligned.m64n", columns, "k", numbers.depth, ".f32.",
      numbers.name, ".", numbers.name, " {", numbered("%", sums, ""), "}, {%", sums, ", %",
      sums + 1, ", %", sums + 2, ", %", sums + 3, "}, %", sums + 4,
      ", 1, 1, 1;\"\n      : ", numbered("\"+f\"(d[", sums, "])"),
      "\n      : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b));\n  }\n};\n");
}

}  // namespace

std::string multiply_template() {
  const Numbers tf32 = {"FormatTf32", "tf32", 8, false};
  std::string text = R"cuda(
struct FormatTf32 {
  typedef float type;
  static FN float wide(float x) { return x; }
};
#ifndef TENON_EMULATION
template <class FORMAT, int COLUMNS, bool TURNED> struct Multiply;
template <class FORMAT, int COLUMNS> struct MultiplyRows;
)cuda";
  for (const Numbers& numbers :
       {Numbers{"FormatF16", "f16", 16, true}, Numbers{"FormatBf16", "bf16", 16, true}}) {
    for (const int columns : {64, 128}) text += multiply(numbers, columns);
  }
  return text + multiply_rows(tf32, 64) + "#endif\n";
}

}  // namespace tenon::codegen::cuda
