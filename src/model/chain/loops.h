// The passes of a chain of linear layers over one block of rows, in lanes: a number of the vector registers belongs to one row,
// so that sums over features and units need no order of lanes. Two versions, for AVX2 and for AVX-512, that round alike: every
// product is added by one fused operation, in the order of the features.
#pragma once

#include <cstdint>

#include "holdfast/model/chain_bend.h"
#include "holdfast/model/row_change.h"

namespace holdfast::model::chain {

// z = weight a + bias, then the activation.
struct Layer {
  const float* weight = nullptr;  // [outs, ins]
  const float* bias = nullptr;    // [outs], or none
  std::int64_t ins = 0, outs = 0;
  Bend bend = Bend::kNone;  // none: the last layer
  float slope = 0;          // of negative values; softplus has it too: slope x + (1 - slope) softplus(x)
  float beta = 0;           // of softplus
};

// One chain, and where its passes may write. Buffers hold `rows` numbers for each unit.
struct Chain {
  const Layer* layers = nullptr;
  std::int64_t count = 0;
  const float *scale = nullptr, *shift = nullptr;  // of the inputs, or none
  bool bends = false;                              // whether any activation is a softplus
  std::int64_t hidden = 0;                         // units of all hidden layers
  float *one = nullptr, *other = nullptr;          // each as wide as the widest layer or the inputs
  float* curved = nullptr;                         // as wide as all hidden layers: from push to pull_again
};

// A network of one hidden layer and one output, output . s(W x + b). Units are filled up with zeros to a multiple of kUnits.
inline constexpr std::int64_t kUnits = 16;
struct Shallow {
  const float* columns = nullptr;  // [ins, units]: W turned over
  const float* bias = nullptr;     // [units]
  const float* output = nullptr;   // [units]
  std::int64_t ins = 0, units = 0;
  Bend bend = Bend::kLeaky;
  float slope = 0, beta = 0;
};
struct Loops {
  std::int64_t rows;  // of a block
  void (*forward)(const Chain& chain, const float* points, std::int64_t rows, bool twice, float* kept, float* logits);
  void (*pull)(const Chain& chain, const float* cotangent, std::int64_t rows, bool twice, float* kept, float* gradient);
  void (*push)(const Chain& chain, const float* direction, std::int64_t rows, const float* kept, float* change);
  void (*pull_again)(const Chain& chain, const float* cotangent, std::int64_t rows, const float* kept, float* gradient);

  // Rows that differ from `row` by changes; those of changed row r end at ends[r]. `difference` [count]: output of a changed row
  // minus that of `row`. `slopes` [1 + count, units]: s' at `row` and at the changed rows. `scratch` [2, units].
  void (*differ)(const Shallow& network, const float* row, const Change* changes, const std::int64_t* ends, std::int64_t count,
                 float* scratch, float* difference, float* slopes);
  // hidden [units] += output times the sum of cotangent[r] slopes[r].
  void (*gather)(const Shallow& network, const float* cotangent, const float* slopes, std::int64_t count, float* hidden);
  // The sum of hidden[u] W[u, column].
  float (*to_input)(const Shallow& network, const float* hidden, std::int64_t column);
};

// Null where the program was compiled for another kind of processor. Whether this one has the instructions is not looked at.
const Loops* avx2_loops();
const Loops* avx512_loops();

}  // namespace holdfast::model::chain
