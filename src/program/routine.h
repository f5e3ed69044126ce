#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// What a program does that one list of kernels cannot say: which of its parts run in which order,
/// operators that run as C++ functions between them, and control flow over both. Values are numbered
/// slots; one is written before it is read, and by one step only.
struct Routine {
  struct Step {
    enum class Kind : std::uint8_t {
      Part,       ///< the kernels of one part, on the operands in order
      Operators,  ///< nodes that no kernel computes; where one has bodies, `bodies` run in their place
      Scan,       ///< a part once for each position along the first axis of the scanned operands
    };
    Kind kind = Kind::Part;
    std::string name;                              ///< the value it makes first
    std::vector<std::uint32_t> operands, results;  ///< slots
    std::uint32_t part = 0;                        ///< Part, Scan: of `Program::parts`
    std::string graph;                             ///< Operators: the nodes, in the text form of graphs
    std::vector<Routine> bodies;                   ///< Operators: by body of the only node
    double run_count = 1;  ///< Part, Scan: how often the part runs, for reports; 0 where data decides
    /// Scan: operands are states, scanned inputs and what every run reads; results are the last
    /// states, then what the runs give stacked.
    std::uint32_t state_count = 0, input_count = 0;
    std::vector<bool> input_is_reversed, output_is_reversed;  ///< Scan: by scanned input, stacked result
  };

  std::vector<std::uint32_t> inputs, outputs;  ///< slots
  std::uint32_t slot_count = 0;
  std::vector<Step> steps;
};

/// A readable form, for people: `%2, %3 = scan part 1(%0, %1) {states = 1, inputs = 1}`.
std::string to_string(const Routine& routine);

}  // namespace tenon
