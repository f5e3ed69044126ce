#include "base/text.h"

#include "base/error.h"
#include "ir/lexer.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "program/text.h"
#include "tasks/task_list.h"

#include <algorithm>

namespace tenon::inline tasks {
namespace {

using Task = TaskList::Task;

std::string named(std::uint32_t buffer) { return buffer == kNoBuffer ? "_" : concat("%", buffer); }

std::string listed(const std::vector<std::uint32_t>& buffers) {
  std::string text;
  for (const std::uint32_t buffer : buffers)
    text += concat(text.empty() ? "" : ", ", named(buffer));
  return text;
}

constexpr std::string_view kChecks[] = {"equal", "at_most", "one_or",
                                        "broadcast"};  // Indexed by ExtentRelation.

std::string quoted_text(std::string_view text) { return print(AttrValue(std::string(text))); }

std::string buffer_text(const TaskList::Buffer& buffer) {
  std::string text = concat(print_name(buffer.name), ": ",
                            buffer.opaque ? to_string(*buffer.opaque)
                                          : to_string(TensorType{buffer.dtype, buffer.dims, {}}),
                            " ", name_of(buffer.lifetime));
  if (buffer.lifetime == Lifetime::Input || buffer.lifetime == Lifetime::Output)
    text += concat(" ", buffer.port);
  if (buffer.form)
    text += concat(" form ", quoted_text(buffer.form->text), " of %", buffer.form->source);
  if (buffer.view_of) text += concat(" view of %", *buffer.view_of);
  if (buffer.is_looked_up) text += " looked_up";
  return text;
}

std::string kernel_text(const TaskList::Kernel& kernel) {
  std::string text =
      concat(print_name(kernel.name), " scratch [", to_string(kernel.scratch_bytes), "]");
  if (kernel.threads > 0) text += concat(" threads ", kernel.threads);
  if (!kernel.library.empty()) text += concat(" library ", quoted_text(kernel.library));
  if (kernel.shared_bytes > 0) text += concat(" shared ", kernel.shared_bytes);
  if (kernel.cluster != 1) text += concat(" cluster ", kernel.cluster);
  for (const TaskList::TensorMap& map : kernel.maps) {
    text += concat(" map ", map.buffer, " rows [", to_string(map.rows), "]");
    for (const auto& [word, numbers] : {std::pair(" extents [", &map.extents),
                                        {" pitches [", &map.pitches},
                                        {" box [", &map.box},
                                        {" steps [", &map.steps}}) {
      text += word;
      for (const std::uint64_t number : *numbers) text += concat(number, ", ");
      text.replace(text.size() - 2, 2, "]");
    }
    if (map.before.empty() && map.places.empty()) continue;
    for (const auto& [word, numbers] :
         {std::pair(" before [", &map.before), {" places [", &map.places}}) {
      text += word;
      for (const std::uint64_t number : *numbers) text += concat(number, ", ");
      if (!numbers->empty()) text.resize(text.size() - 2);
      text += "]";
    }
  }
  return text;
}

std::string attributes_text(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes)
    text += concat(text.empty() ? "" : ", ", print_name(name), " = ", print(value));
  return concat("{", text, "}");
}

std::string host_text(const TaskList::Host& host) {
  std::string layouts;
  for (const std::string& layout : host.layouts)
    layouts += concat(layouts.empty() ? "" : ", ", quoted_text(layout));
  return concat("    op ", host.op->name, " ", quoted_text(attributes_text(host.attributes)), " (",
                listed(host.operands), ") to (", listed(host.results), ") layouts [", layouts,
                "] at ", quoted_text(host.where), "\n");
}

std::string branch_text(const BranchStep& branch) {
  std::string text = concat("    on ", named(branch.condition), " bodies to ", branch.then_end,
                            ", ", branch.else_end, "\n");
  for (const BranchStep::Result& each : branch.results) {
    text += concat("    result ", named(each.result), " of ", named(each.first), ", ",
                   named(each.second), "\n");
  }
  return text;
}

std::string loop_text(const LoopStep& loop) {
  std::string text =
      concat("    body to ", loop.end, " trips ", named(loop.trip_count), " while ",
             named(loop.condition), " counter ", named(loop.counter), ", ", named(loop.goes_on),
             " next ", named(loop.next_condition), " runs ", format_real(loop.run_count), "\n");
  const auto flag = [](bool is, std::string_view word) {
    return is ? concat(" ", word) : std::string();
  };
  for (const LoopStep::Carried& each : loop.carried) {
    text += concat("    carry ", named(each.initial), " as ", named(each.in), " from ",
                   named(each.out), " to ", named(each.result), ", ", named(each.spare),
                   flag(each.is_direct, "direct"), "\n");
  }
  for (const LoopStep::Scanned& each : loop.scanned) {
    text += concat("    scan ", named(each.source), " as ", named(each.in), " axis ", each.axis,
                   flag(each.is_reversed, "reversed"), flag(each.is_sequence, "sequence"), "\n");
  }
  for (const LoopStep::Stacked& each : loop.stacked) {
    text += concat("    stack ", named(each.out), " to ", named(each.result), " axis ", each.axis,
                   flag(each.is_reversed, "reversed"), flag(each.is_sequence, "sequence"),
                   flag(each.is_direct, "direct"), "\n");
  }
  return text;
}

class TaskListParser {
 public:
  TaskListParser(std::string_view text, std::string_view source) : in_(text, source) {}

  TaskList run() {
    expect_word("tasks");
    list_.name = in_.name("the list's name");
    in_.expect('{', "before the elements of the list");
    while (!in_.take('}')) entry();
    if (!in_.is_at_end()) throw in_.error_here("a list of tasks ends here");
    return std::move(list_);
  }

 private:
  void expect_word(std::string_view word) {
    if (!in_.take_word(word)) throw in_.error_here(concat("expected '", word, "'"));
  }
  template <class Integer>
  Integer number(std::string_view what) {
    const std::size_t at = in_.position();
    const std::int64_t value = in_.integer(what);
    if (value < 0 || value > std::int64_t{UINT32_MAX})
      throw in_.error_at(at, concat(what, " is out of range"));
    return static_cast<Integer>(value);
  }
  std::uint32_t buffer() {
    in_.expect('%', "before a buffer's number");
    const std::size_t at = in_.position();
    const auto id = number<std::uint32_t>("a buffer's number");
    if (id >= list_.buffers.size()) throw in_.error_at(at, concat("there is no buffer %", id));
    return id;
  }
  std::uint32_t optional_buffer() { return in_.take_word("_") ? kNoBuffer : buffer(); }
  std::vector<std::uint32_t> buffers() {
    std::vector<std::uint32_t> list;
    if (in_.peek() != '%' && in_.peek() != '_') return list;
    do list.push_back(optional_buffer());
    while (in_.take(','));
    return list;
  }

  void entry() {
    if (in_.peek() == '%') return buffer_entry();
    if (in_.take_word("symbol")) return symbol();
    if (in_.take_word("check")) return check();
    if (in_.take_word("kernel")) return kernel();
    if (in_.take_word("inputs")) return void(list_.inputs = buffers());
    if (in_.take_word("outputs")) return void(list_.outputs = buffers());
    if (in_.take_word("state")) return state();
    if (in_.take_word("task")) return task();
    throw in_.error_here(
        "expected a symbol, a check, a buffer, a kernel, inputs, outputs, a state or a task");
  }

  void symbol() {
    TaskList::Symbol made;
    made.name = in_.symbol();
    expect_word("from");
    made.lo = in_.integer("the least value");
    expect_word("to");
    made.hi = in_.integer("the greatest value");
    expect_word("axis");
    made.axis = number<std::uint32_t>("an axis");
    expect_word("of");
    // Buffer types mention symbols, so buffers are parsed after symbols.
    if (!in_.take_word("_")) {
      in_.expect('%', "before a buffer's number");
      made.buffer = number<std::uint32_t>("a buffer's number");
    }
    ranges_[made.name] = {made.lo, made.hi};
    list_.symbols.push_back(std::move(made));
  }

  Dim bracketed_dim() {
    in_.expect('[', "before an extent");
    Dim dim = in_.dim(ranges_);
    in_.expect(']', "after an extent");
    return dim;
  }

  void check() {
    TaskList::ConstraintCheck made;
    std::size_t kind = 0;
    while (kind < std::size(kChecks) && !in_.take_word(kChecks[kind])) ++kind;
    if (kind == std::size(kChecks))
      throw in_.error_here("expected equal, at_most, one_or or broadcast");
    made.kind = static_cast<ExtentRelation>(kind);
    made.a = bracketed_dim();
    made.b = bracketed_dim();
    made.op = in_.text("an operator's name");
    made.where = in_.text("a place");
    if (in_.take_word("in")) {
      expect_word("tasks");
      made.begin = number<std::uint32_t>("a task's number");
      expect_word("to");
      made.end = number<std::uint32_t>("a task's number");
    }
    list_.checks.push_back(std::move(made));
  }

  void buffer_entry() {
    in_.expect('%', "before a buffer's number");
    const std::size_t at = in_.position();
    if (number<std::size_t>("a buffer's number") != list_.buffers.size()) {
      throw in_.error_at(
          at, concat("buffers are numbered in order: %", list_.buffers.size(), " comes next"));
    }
    TaskList::Buffer made;
    made.name = in_.name("a buffer's name");
    in_.expect(':', "after a buffer's name");
    const std::size_t type_at = in_.position();
    const Type type = in_.type(ranges_);
    if (type.is_tensor()) {
      made.dtype = type.tensor().dtype;
      made.dims = type.tensor().dims;
    } else {
      made.opaque = type;
    }
    made.lifetime = lifetime();
    if (made.opaque && made.lifetime != Lifetime::Input && made.lifetime != Lifetime::Sized) {
      throw in_.error_at(type_at, "only the run holds what is no tensor of known rank");
    }
    if (made.lifetime == Lifetime::Input || made.lifetime == Lifetime::Output)
      made.port = number<std::uint32_t>("which one");
    if (in_.take_word("form")) {
      TaskList::Form form;
      form.text = in_.text("a form");
      expect_word("of");
      form.source = buffer();
      made.form = std::move(form);
    }
    if (in_.take_word("view")) {
      expect_word("of");
      made.view_of = buffer();
    }
    made.is_looked_up = in_.take_word("looked_up");
    list_.buffers.push_back(std::move(made));
  }

  Lifetime lifetime() {
    for (const Lifetime each : {Lifetime::Input, Lifetime::Output, Lifetime::Constant,
                                Lifetime::Value, Lifetime::Sized}) {
      if (in_.take_word(name_of(each))) return each;
    }
    throw in_.error_here("expected input, output, constant, value or sized");
  }

  void state() {
    Program::State& made = list_.states.emplace_back();
    expect_word("input");
    made.input = number<std::uint32_t>("an input's position");
    expect_word("output");
    made.output = number<std::uint32_t>("an output's position");
    if (in_.take_word("starts")) {
      expect_word("with");
      made.starts_with_zeros = in_.take_word("zeros");
      if (!made.starts_with_zeros) made.initial = buffer();
    }
    made.may_overwrite = in_.take_word("in_place");
  }

  // Nests have a text form of their own; a parsed list only has the kernels' names.
  void kernel() {
    const std::size_t at = in_.position();
    if (number<std::size_t>("a kernel's number") != list_.kernels.size()) {
      throw in_.error_at(
          at, concat("kernels are numbered in order: ", list_.kernels.size(), " comes next"));
    }
    TaskList::Kernel made;
    made.name = in_.name("a kernel's name");
    expect_word("scratch");
    in_.expect('[', "before a kernel's scratch");
    made.scratch_bytes = in_.dim(ranges_);
    in_.expect(']', "after a kernel's scratch");
    if (in_.take_word("threads")) made.threads = number<std::uint32_t>("threads of a block");
    if (in_.take_word("library")) made.library = in_.text("a library's function");
    if (in_.take_word("shared"))
      made.shared_bytes = number<std::uint32_t>("bytes of shared memory");
    if (in_.take_word("cluster")) made.cluster = number<std::uint32_t>("blocks of a cluster");
    while (in_.take_word("map")) made.maps.push_back(tensor_map());
    list_.kernels.push_back(std::move(made));
  }

  TaskList::TensorMap tensor_map() {
    TaskList::TensorMap map;
    map.buffer = number<std::uint32_t>("which of a call's buffers");
    expect_word("rows");
    in_.expect('[', "before a map's rows");
    map.rows = in_.dim(ranges_);
    in_.expect(']', "after a map's rows");
    const auto rest_of = [&](std::vector<std::uint64_t>& list) {
      in_.expect('[', "before a map's numbers");
      do {
        list.push_back(number<std::uint64_t>("a number of a map"));
      } while (in_.take(','));
      in_.expect(']', "after a map's numbers");
    };
    const auto numbers = [&](const char* word, std::vector<std::uint64_t>& list) {
      expect_word(word);
      rest_of(list);
    };
    numbers("extents", map.extents);
    numbers("pitches", map.pitches);
    numbers("box", map.box);
    numbers("steps", map.steps);
    if (in_.take_word("before")) {
      rest_of(map.before);
      numbers("places", map.places);
    }
    return map;
  }

  void task() {
    Task made;
    made.name = in_.name("a task's name");
    made.kind = kind();
    expect_word("of");
    made.value = in_.name("the results of a task");
    expect_word("reads");
    made.reads = buffers();
    expect_word("writes");
    made.writes = buffers();
    in_.expect('{', "before the candidates of a task");
    while (!in_.take('}')) {
      if (in_.take_word("share")) {
        const std::uint32_t result = buffer();
        expect_word("with");
        made.may_share.emplace_back(result, buffer());
      } else if (made.kind == Task::Kind::Host) {
        made.host = host();
      } else if (made.kind == Task::Kind::Branch) {
        made.branch = branch();
      } else if (made.kind == Task::Kind::Loop) {
        made.loop = loop();
      } else {
        expect_word("candidate");
        made.alternatives.push_back(alternative());
      }
    }
    list_.tasks.push_back(std::move(made));
  }

  std::vector<std::uint32_t> in_brackets() {
    in_.expect('(', "before buffers");
    std::vector<std::uint32_t> list = buffers();
    in_.expect(')', "after buffers");
    return list;
  }

  TaskList::Host host() {
    TaskList::Host made;
    expect_word("op");
    made.op = &all_ops().get(in_.name("an operator's name"));
    made.attributes = parse_attributes(in_.text("attributes"), *made.op);
    made.operands = in_brackets();
    expect_word("to");
    made.results = in_brackets();
    expect_word("layouts");
    in_.expect('[', "before layouts");
    while (!in_.take(']')) {
      made.layouts.push_back(in_.text("a layout"));
      if (in_.peek() != ']') in_.expect(',', "between layouts");
    }
    expect_word("at");
    made.where = in_.text("a place");
    return made;
  }

  BranchStep branch() {
    BranchStep made;
    expect_word("on");
    made.condition = buffer();
    expect_word("bodies");
    expect_word("to");
    made.then_end = number<std::uint32_t>("a task's number");
    in_.expect(',', "between the ends of bodies");
    made.else_end = number<std::uint32_t>("a task's number");
    while (in_.take_word("result")) {
      BranchStep::Result& each = made.results.emplace_back();
      each.result = buffer();
      expect_word("of");
      each.first = buffer();
      in_.expect(',', "between what bodies give");
      each.second = buffer();
    }
    return made;
  }

  LoopStep loop() {
    LoopStep made;
    const auto pair = [&](std::uint32_t& a, std::uint32_t& b) {
      a = optional_buffer();
      in_.expect(',', "between two buffers");
      b = optional_buffer();
    };
    expect_word("body");
    expect_word("to");
    made.end = number<std::uint32_t>("a task's number");
    expect_word("trips");
    made.trip_count = optional_buffer();
    expect_word("while");
    made.condition = optional_buffer();
    expect_word("counter");
    pair(made.counter, made.goes_on);
    expect_word("next");
    made.next_condition = optional_buffer();
    expect_word("runs");
    made.run_count = in_.real("how often it runs");
    while (in_.take_word("carry")) {
      LoopStep::Carried& each = made.carried.emplace_back();
      each.initial = buffer();
      expect_word("as");
      each.in = buffer();
      expect_word("from");
      each.out = buffer();
      expect_word("to");
      pair(each.result, each.spare);
      each.is_direct = in_.take_word("direct");
    }
    while (in_.take_word("scan")) {
      LoopStep::Scanned& each = made.scanned.emplace_back();
      each.source = buffer();
      expect_word("as");
      each.in = buffer();
      expect_word("axis");
      each.axis = in_.integer("an axis");
      each.is_reversed = in_.take_word("reversed");
      each.is_sequence = in_.take_word("sequence");
    }
    while (in_.take_word("stack")) {
      LoopStep::Stacked& each = made.stacked.emplace_back();
      each.out = buffer();
      expect_word("to");
      each.result = buffer();
      expect_word("axis");
      each.axis = in_.integer("an axis");
      each.is_reversed = in_.take_word("reversed");
      each.is_sequence = in_.take_word("sequence");
      each.is_direct = in_.take_word("direct");
    }
    return made;
  }

  Task::Kind kind() {
    using Kind = Task::Kind;
    for (const Kind each : {Kind::Compute, Kind::Host, Kind::Copy, Kind::Branch, Kind::Loop}) {
      if (in_.take_word(name_of(each))) return each;
    }
    throw in_.error_here("expected compute, host, copy, branch or loop");
  }

  TaskList::Alternative alternative() {
    TaskList::Alternative made;
    made.candidate = in_.text("a candidate's name");
    while (in_.take_word("when")) {
      const std::size_t at = in_.position();
      const std::string name = in_.symbol();
      const auto found = std::ranges::find(list_.symbols, name, &TaskList::Symbol::name);
      if (found == list_.symbols.end()) throw in_.error_at(at, concat("there is no symbol ", name));
      TaskList::Guard guard{static_cast<std::uint32_t>(found - list_.symbols.begin()), 0, 0};
      expect_word("from");
      guard.lo = in_.integer("the least value");
      expect_word("to");
      guard.hi = in_.integer("the greatest value");
      made.when.push_back(guard);
    }
    in_.expect('{', "before the calls of a candidate");
    while (!in_.take('}')) {
      expect_word("call");
      const std::size_t at = in_.position();
      TaskList::Call call;
      call.kernel = number<std::uint32_t>("a kernel's number");
      if (call.kernel >= list_.kernels.size())
        throw in_.error_at(at, concat("there is no kernel ", call.kernel));
      in_.expect('(', "before a call's buffers");
      call.buffers = buffers();
      in_.expect(')', "after a call's buffers");
      expect_word("extents");
      in_.expect('[', "before a kernel's extents");
      while (!in_.take(']')) {
        call.extents.push_back(in_.dim(ranges_));
        if (in_.peek() != ']') in_.expect(',', "between a kernel's extents");
      }
      expect_word("items");
      in_.expect('[', "before the number of items");
      call.work = in_.dim(ranges_);
      in_.expect(']', "after the number of items");
      expect_word("flops");
      call.flops = in_.real("flops");
      expect_word("bytes");
      call.bytes = in_.real("bytes");
      made.calls.push_back(std::move(call));
    }
    return made;
  }

  Lexer in_;
  TaskList list_;
  SymbolRanges ranges_;
};

}  // namespace

std::string to_string(const TaskList& tasks) {
  std::string text = concat("tasks ", print_name(tasks.name), " {\n");
  for (const TaskList::Symbol& symbol : tasks.symbols) {
    text += concat("  symbol ", to_string(Dim::symbol(symbol.name)), " from ", symbol.lo, " to ",
                   symbol.hi, " axis ", symbol.axis, " of ", named(symbol.buffer), "\n");
  }
  for (const TaskList::ConstraintCheck& check : tasks.checks) {
    text += concat("  check ", kChecks[static_cast<std::size_t>(check.kind)], " [",
                   to_string(check.a), "] [", to_string(check.b), "] ", quoted_text(check.op), " ",
                   quoted_text(check.where));
    if (check.end != kNoBuffer) text += concat(" in tasks ", check.begin, " to ", check.end);
    text += "\n";
  }
  for (std::size_t k = 0; k < tasks.buffers.size(); ++k)
    text += concat("  %", k, " ", buffer_text(tasks.buffers[k]), "\n");
  for (std::size_t k = 0; k < tasks.kernels.size(); ++k) {
    text += concat("  kernel ", k, " ", kernel_text(tasks.kernels[k]), "\n");
  }
  text += concat("  inputs ", listed(tasks.inputs), "\n  outputs ", listed(tasks.outputs), "\n");
  for (const Program::State& state : tasks.states) text += concat("  ", to_string(state), "\n");
  for (const Task& task : tasks.tasks) {
    text += concat("  task ", print_name(task.name), " ", name_of(task.kind), " of ",
                   print_name(task.value), " reads ", listed(task.reads), " writes ",
                   listed(task.writes), " {\n");
    for (const TaskList::Alternative& alternative : task.alternatives) {
      text += concat("    candidate ", quoted_text(alternative.candidate));
      for (const TaskList::Guard& guard : alternative.when) {
        text += concat(" when ", to_string(Dim::symbol(tasks.symbols[guard.symbol].name)), " from ",
                       guard.lo, " to ", guard.hi);
      }
      text += " {\n";
      for (const TaskList::Call& call : alternative.calls) {
        text += concat("      call ", call.kernel, "(", listed(call.buffers), ") extents ",
                       to_string(call.extents), " items [", to_string(call.work), "] flops ",
                       format_real(call.flops), " bytes ", format_real(call.bytes), "\n");
      }
      text += "    }\n";
    }
    if (task.host) text += host_text(*task.host);
    if (task.branch) text += branch_text(*task.branch);
    if (task.loop) text += loop_text(*task.loop);
    for (const auto& [result, operand] : task.may_share)
      text += concat("    share %", result, " with %", operand, "\n");
    text += "  }\n";
  }
  return text + "}\n";
}

TaskList parse_tasks(std::string_view text, std::string_view source_name) {
  return TaskListParser(text, source_name).run();
}

}  // namespace tenon::inline tasks
