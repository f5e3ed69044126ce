#pragma once

#include "frontends/tensorscope/data_flow.h"
#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::tensorscope {

/// How far a row and a value of a graph agree.
enum class Agreement : std::uint8_t {
  Equal,     ///< name, operator and shape
  Permuted,  ///< likewise, with an image or filter in another layout
};

/// Rows of a table beside the values of a graph, by names where they allow it.
struct Match {
  struct Pair {
    std::size_t row = 0;
    ValueId value;
    Agreement agreement = Agreement::Equal;
  };
  struct Left {
    std::size_t row = 0;
    std::string reason;
  };
  std::vector<Pair> pairs;           ///< in the order of rows
  std::vector<Left> left_rows;       ///< nodes and feeds without a value
  std::vector<ValueId> left_values;  ///< of nodes and inputs, without a row
};
Match match_graph(const Table& table, const DataFlow& step, const Graph& graph);

}  // namespace tenon::tensorscope
