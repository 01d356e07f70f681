// Networks of one hidden layer and two classes, at rows that differ from another row in a few columns. Only what changes of the
// hidden units' inputs is computed, not the whole first layer: a row costs two passes through the units instead of one through
// the weights. valid_effect asks for some fifty such rows of every sample. LinearChain on whole rows is the reference.
//
// The output is f = logit of class 1 minus that of class 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/core/stages.h"
#include "holdfast/model/chain_bend.h"
#include "holdfast/model/linear_chain.h"
#include "holdfast/model/row_change.h"

namespace holdfast::model {

class ChangedRows {
 public:
  using Change = chain::Change;

  // Nothing where the chain is deeper or has more classes.
  static std::optional<ChangedRows> of(const LinearChain& chain);

  std::int64_t inputs() const { return ins_; }
  // Numbers that differences() keeps of one row.
  std::int64_t units() const { return units_; }

  // f of each changed row minus f(row). The changes of row r end at ends[r]. `slopes` [1 + count, units]: kept for gather(), of
  // the row itself first.
  void differences(const float* row, const std::vector<Change>& changes, const std::vector<std::int64_t>& ends, float* difference,
                   float* slopes);
  // Adds the gradient of sum cotangent[r] f(row r) by the hidden units' inputs to `hidden` [units].
  void gather(const float* cotangent, const float* slopes, std::int64_t count, float* hidden) const;
  // The gradient by one column of the input.
  float to_input(const float* hidden, std::int64_t column) const;

 private:
  ChangedRows() = default;
  chain::Shallow network() const;

  const chain::Loops* loops_ = nullptr;
  std::vector<float> columns_, bias_, output_, scratch_;
  std::int64_t ins_ = 0, units_ = 0;
  chain::Bend bend_ = chain::Bend::kLeaky;
  float slope_ = 0, beta_ = 0;
};

}  // namespace holdfast::model
