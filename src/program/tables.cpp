#include "program/tables.h"

#include "program/checksum.h"

namespace tenon::inline program {
namespace {

void write_operator(BinaryWriter& out, const HostOperator& made) {
  const auto texts = [&](const std::vector<std::string>& list) {
    out.list(list, [&](const std::string& text) { out.text(text); });
  };
  out.text(made.op);
  out.list(made.attributes, [&](const ProgramAttribute& attribute) {
    out.text(attribute.name);
    out.number(static_cast<std::uint64_t>(attribute.kind));
    out.extents(attribute.integers);
    out.list(attribute.reals, [&](double real) { out.real(real); });
    texts(attribute.texts);
    out.bytes_of(attribute.bytes);
  });
  out.numbers(made.operands);
  out.numbers(made.results);
  texts(made.layouts);
  out.text(made.where);
}

void write_branch(BinaryWriter& out, const BranchStep& made) {
  for (const std::uint32_t number : {made.condition, made.then_end, made.else_end})
    out.number(number);
  out.list(made.results, [&](const BranchStep::Result& each) {
    for (const std::uint32_t id : {each.result, each.first, each.second}) out.number(id);
  });
}

void write_loop(BinaryWriter& out, const LoopStep& made) {
  for (const std::uint32_t number : {made.end, made.trip_count, made.condition, made.counter,
                                     made.goes_on, made.next_condition}) {
    out.number(number);
  }
  out.list(made.carried, [&](const LoopStep::Carried& each) {
    for (const std::uint32_t id : {each.initial, each.in, each.out, each.result, each.spare})
      out.number(id);
    out.number(each.is_direct);
  });
  out.list(made.scanned, [&](const LoopStep::Scanned& each) {
    for (const std::uint32_t id : {each.source, each.in}) out.number(id);
    out.number(static_cast<std::uint64_t>(each.axis));
    for (const bool flag : {each.is_reversed, each.is_sequence}) out.number(flag);
  });
  out.list(made.stacked, [&](const LoopStep::Stacked& each) {
    for (const std::uint32_t id : {each.out, each.result}) out.number(id);
    out.number(static_cast<std::uint64_t>(each.axis));
    for (const bool flag : {each.is_reversed, each.is_sequence, each.is_direct}) out.number(flag);
  });
  out.real(made.run_count);
}

// Reads a buffer id or kNoBuffer.
std::uint32_t read_optional(BinaryReader& in, std::size_t buffers) {
  const std::uint32_t id = in.small();
  if (id != kNoBuffer && id >= buffers) throw damaged("a number that nothing has");
  return id;
}
bool read_flag(BinaryReader& in) { return in.id(2) != 0; }

HostOperator read_operator(BinaryReader& in, std::size_t symbols, std::size_t buffers) {
  const auto texts = [&] {
    std::vector<std::string> list;
    for (std::size_t left = in.count(8); left > 0; --left) list.push_back(in.text());
    return list;
  };
  const auto ids = [&] {
    std::vector<std::uint32_t> list;
    for (std::size_t left = in.count(8); left > 0; --left)
      list.push_back(read_optional(in, buffers));
    return list;
  };
  HostOperator made;
  made.op = in.text();
  for (std::size_t left = in.count(48); left > 0; --left) {
    ProgramAttribute attribute;
    attribute.name = in.text();
    attribute.kind = static_cast<ProgramAttribute::Kind>(in.id(10));
    for (std::size_t count = in.count(24); count > 0; --count)
      attribute.integers.push_back(in.extent(symbols));
    for (std::size_t count = in.count(8); count > 0; --count) attribute.reals.push_back(in.real());
    attribute.texts = texts();
    attribute.bytes = in.bytes();
    made.attributes.push_back(std::move(attribute));
  }
  made.operands = ids();
  made.results = ids();
  made.layouts = texts();
  made.where = in.text();
  return made;
}

BranchStep read_branch(BinaryReader& in, std::size_t buffers) {
  BranchStep made;
  made.condition = in.id(buffers);
  made.then_end = in.small();
  made.else_end = in.small();
  for (std::size_t left = in.count(24); left > 0; --left) {
    auto& each = made.results.emplace_back();
    for (std::uint32_t* id : {&each.result, &each.first, &each.second}) *id = in.id(buffers);
  }
  return made;
}

LoopStep read_loop(BinaryReader& in, std::size_t buffers) {
  LoopStep made;
  made.end = in.small();
  for (std::uint32_t* id :
       {&made.trip_count, &made.condition, &made.counter, &made.goes_on, &made.next_condition}) {
    *id = read_optional(in, buffers);
  }
  for (std::size_t left = in.count(48); left > 0; --left) {
    auto& each = made.carried.emplace_back();
    for (std::uint32_t* id : {&each.initial, &each.in, &each.out}) *id = in.id(buffers);
    for (std::uint32_t* id : {&each.result, &each.spare}) *id = read_optional(in, buffers);
    each.is_direct = read_flag(in);
  }
  for (std::size_t left = in.count(40); left > 0; --left) {
    auto& each = made.scanned.emplace_back();
    for (std::uint32_t* id : {&each.source, &each.in}) *id = in.id(buffers);
    each.axis = static_cast<std::int64_t>(in.number());
    for (bool* flag : {&each.is_reversed, &each.is_sequence}) *flag = read_flag(in);
  }
  for (std::size_t left = in.count(48); left > 0; --left) {
    auto& each = made.stacked.emplace_back();
    for (std::uint32_t* id : {&each.out, &each.result}) *id = in.id(buffers);
    each.axis = static_cast<std::int64_t>(in.number());
    for (bool* flag : {&each.is_reversed, &each.is_sequence, &each.is_direct})
      *flag = read_flag(in);
  }
  made.run_count = in.real();
  return made;
}

class TablesReader {
 public:
  explicit TablesReader(BinaryReader& in) : in_(in) {}

  Program run() {
    program_.name = in_.text();
    program_.target = in_.text();
    repeat(40, [&] { read_symbol(program_.symbols.emplace_back()); });
    repeat(80, [&] { read_check(program_.checks.emplace_back()); });
    repeat(72, [&] { read_buffer(program_.buffers.emplace_back()); });
    program_.inputs = ids(program_.buffers.size());
    program_.outputs = ids(program_.buffers.size());
    repeat(40, [&] { read_kernel(program_.kernels.emplace_back()); });
    repeat(32, [&] { read_step(program_.steps.emplace_back()); });
    repeat(32, [&] { read_state(program_.states.emplace_back()); });
    program_.arena_bytes = in_.number();
    program_.is_arena_planned = in_.number() != 0;
    repeat(8, [&] { program_.constant_checksums.push_back(in_.number()); });
    const std::size_t symbols = program_.symbols.size(), buffers = program_.buffers.size();
    repeat(48, [&] { program_.operators.push_back(read_operator(in_, symbols, buffers)); });
    repeat(32, [&] { program_.branches.push_back(read_branch(in_, buffers)); });
    repeat(80, [&] { program_.loops.push_back(read_loop(in_, buffers)); });
    for (Program::Step& step : program_.steps) find_buffers(step);
    return std::move(program_);
  }

 private:
  // Reads a list of items of at least `bytes` each.
  template <class Read>
  void repeat(std::size_t bytes, Read read) {
    for (std::size_t left = in_.count(bytes); left > 0; --left) read();
  }
  std::int64_t integer() { return static_cast<std::int64_t>(in_.number()); }
  std::uint32_t short_number() { return static_cast<std::uint32_t>(in_.number()); }
  Extent extent() { return in_.extent(program_.symbols.size()); }
  std::vector<Extent> extents() {
    std::vector<Extent> list;
    repeat(24, [&] { list.push_back(extent()); });
    return list;
  }
  std::vector<std::uint32_t> ids(std::size_t bound) {
    std::vector<std::uint32_t> list;
    repeat(8, [&] { list.push_back(in_.id(bound)); });
    return list;
  }

  void read_symbol(Program::Symbol& symbol) {
    symbol.name = in_.text();
    symbol.lo = integer();
    symbol.hi = integer();
    symbol.buffer = in_.small();
    symbol.axis = in_.small();
  }

  void read_check(ShapeCheck& check) {
    check.kind = static_cast<ExtentRelation>(in_.id(4));
    check.a = extent();
    check.b = extent();
    for (std::string* text : {&check.op, &check.where, &check.rule}) *text = in_.text();
    for (std::uint32_t* step : {&check.begin, &check.end}) *step = in_.small();
  }

  void read_buffer(Program::Buffer& buffer) {
    buffer.name = in_.text();
    buffer.dtype = in_.text();
    buffer.element_bytes = short_number();
    buffer.dims = extents();
    buffer.place = static_cast<Program::BufferKind>(in_.id(6));
    buffer.offset = in_.number();
    buffer.first_step = short_number();
    buffer.last_step = short_number();
    const std::uint32_t flags = in_.id(4);
    buffer.is_looked_up = (flags & 1) != 0;
    buffer.is_weight = (flags & 2) != 0;
  }

  void read_kernel(Program::Kernel& kernel) {
    kernel.name = in_.text();
    kernel.symbol = in_.text();
    kernel.scratch_bytes = extent();
    repeat(8, [&] { kernel.checks.push_back(in_.text()); });
    kernel.threads = short_number();
    kernel.library = in_.text();
    kernel.shared_bytes = short_number();
    repeat(64, [&] { read_map(kernel.maps.emplace_back()); });
    kernel.cluster = short_number();
  }

  void read_map(Program::TensorMap& map) {
    map.buffer = short_number();
    map.rows = extent();
    for (std::vector<std::uint64_t>* list :
         {&map.extents, &map.pitches, &map.box, &map.steps, &map.before, &map.places})
      repeat(8, [&] { list->push_back(in_.number()); });
  }

  void read_step(Program::Step& step) {
    step.name = in_.text();
    step.value = in_.text();
    step.kind = static_cast<Program::StepKind>(in_.id(4));
    step.detail = in_.small();
    if (step.kind != Program::StepKind::Kernel) return;
    step.kernel = in_.id(program_.kernels.size());
    step.buffers = ids(program_.buffers.size());
    step.extents = extents();
    step.work = extent();
    step.candidate = in_.text();
    repeat(24, [&] {
      Program::Guard& guard = step.when.emplace_back();
      guard.symbol = in_.id(program_.symbols.size());
      guard.lo = integer();
      guard.hi = integer();
    });
    step.flops = in_.real();
    step.bytes = in_.real();
  }

  void read_state(Program::State& state) {
    state.input = in_.id(program_.inputs.size());
    state.output = in_.id(program_.outputs.size());
    state.initial = read_optional(in_, program_.buffers.size());
    const std::uint32_t flags = in_.id(4);
    state.starts_with_zeros = (flags & 1) != 0;
    state.may_overwrite = (flags & 2) != 0;
  }

  void find_buffers(Program::Step& step) {
    if (step.kind == Program::StepKind::Kernel) return;
    const std::size_t counts[] = {0, program_.operators.size(), program_.branches.size(),
                                  program_.loops.size()};
    if (step.detail >= counts[static_cast<std::size_t>(step.kind)])
      throw damaged("a step that says nothing");
    step.buffers = buffers_of(program_, step);
  }

  BinaryReader& in_;
  Program program_;
};

}  // namespace

void write_tables(BinaryWriter& out, const Program& program) {
  out.text(program.name);
  out.text(program.target);
  out.list(program.symbols, [&](const Program::Symbol& symbol) {
    out.text(symbol.name);
    for (std::int64_t number : {symbol.lo, symbol.hi})
      out.number(static_cast<std::uint64_t>(number));
    out.number(symbol.buffer);
    out.number(symbol.axis);
  });
  out.list(program.checks, [&](const ShapeCheck& check) {
    out.number(static_cast<std::uint64_t>(check.kind));
    out.extent(check.a);
    out.extent(check.b);
    for (const std::string* text : {&check.op, &check.where, &check.rule}) out.text(*text);
    for (const std::uint32_t step : {check.begin, check.end}) out.number(step);
  });
  out.list(program.buffers, [&](const Program::Buffer& buffer) {
    out.text(buffer.name);
    out.text(buffer.dtype);
    out.number(buffer.element_bytes);
    out.extents(buffer.dims);
    out.number(static_cast<std::uint64_t>(buffer.place));
    out.number(buffer.offset);
    out.number(buffer.first_step);
    out.number(buffer.last_step);
    out.number((buffer.is_looked_up ? 1 : 0) + (buffer.is_weight ? 2 : 0));
  });
  out.numbers(program.inputs);
  out.numbers(program.outputs);
  out.list(program.kernels, [&](const Program::Kernel& kernel) {
    out.text(kernel.name);
    out.text(kernel.symbol);
    out.extent(kernel.scratch_bytes);
    out.list(kernel.checks, [&](const std::string& check) { out.text(check); });
    out.number(kernel.threads);
    out.text(kernel.library);
    out.number(kernel.shared_bytes);
    out.list(kernel.maps, [&](const Program::TensorMap& map) {
      out.number(map.buffer);
      out.extent(map.rows);
      for (const std::vector<std::uint64_t>* list :
           {&map.extents, &map.pitches, &map.box, &map.steps, &map.before, &map.places})
        out.list(*list, [&](std::uint64_t number) { out.number(number); });
    });
    out.number(kernel.cluster);
  });
  const auto call = [&](const Program::Call& made) {
    out.number(made.kernel);
    out.numbers(made.buffers);
    out.extents(made.extents);
    out.extent(made.work);
    out.text(made.candidate);
  };
  out.list(program.steps, [&](const Program::Step& step) {
    out.text(step.name);
    out.text(step.value);
    out.number(static_cast<std::uint64_t>(step.kind));
    out.number(step.detail);
    if (step.kind != Program::StepKind::Kernel) return;
    call(step);
    out.list(step.when, [&](const Program::Guard& guard) {
      out.number(guard.symbol);
      for (std::int64_t number : {guard.lo, guard.hi})
        out.number(static_cast<std::uint64_t>(number));
    });
    out.real(step.flops);
    out.real(step.bytes);
  });
  out.list(program.states, [&](const Program::State& state) {
    for (const std::uint32_t number : {state.input, state.output, state.initial})
      out.number(number);
    out.number((state.starts_with_zeros ? 1 : 0) + (state.may_overwrite ? 2 : 0));
  });
  out.number(program.arena_bytes);
  out.number(program.is_arena_planned);
  out.list(block_checksums({program.constants.get(), program.constant_bytes}),
           [&](std::uint64_t sum) { out.number(sum); });
  out.list(program.operators, [&](const HostOperator& made) { write_operator(out, made); });
  out.list(program.branches, [&](const BranchStep& made) { write_branch(out, made); });
  out.list(program.loops, [&](const LoopStep& made) { write_loop(out, made); });
}

Program read_tables(BinaryReader& in) { return TablesReader(in).run(); }

}  // namespace tenon::inline program
