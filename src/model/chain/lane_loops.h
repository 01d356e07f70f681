// The loops themselves, for registers of any width. Included by the files that compile them for one instruction set, after
// `#pragma GCC target`: nothing of the standard library may be used here, or its functions would be compiled for that set and
// taken for all.
//
// `Register` has kWidth floats and the operations below; a block has two registers for each unit.
#pragma once

#include "loops.h"

#define HOLDFAST_INLINE inline __attribute__((always_inline))

namespace holdfast::model::chain {

template <class Register>
class LaneLoops {
 public:
  static constexpr Loops table() { return {kRows, forward, pull, push, pull_again, differ, gather, to_input}; }

 private:
  using Vector = typename Register::Vector;
  static constexpr std::int64_t kWidth = Register::kWidth, kRows = 2 * kWidth, kTile = Register::kTile;

  // y[o] = bias[o] + sum_i w[o over + i along] x[i], for `kCount` outputs at once.
  template <std::int64_t kCount>
  static HOLDFAST_INLINE void multiply_tile(const float* w, std::int64_t over, std::int64_t along, std::int64_t ins,
                                            const float* x, const float* bias, float* y) {
    Vector first[kCount], second[kCount];
#pragma GCC unroll 16
    for (std::int64_t o = 0; o < kCount; ++o) first[o] = second[o] = Register::all(bias != nullptr ? bias[o] : 0.0f);
    for (std::int64_t i = 0; i < ins; ++i, w += along, x += kRows) {
      const Vector x0 = Register::load(x), x1 = Register::load(x + kWidth);
#pragma GCC unroll 16
      for (std::int64_t o = 0; o < kCount; ++o) {
        const Vector weight = Register::all(w[o * over]);
        first[o] = Register::multiply_add(weight, x0, first[o]);
        second[o] = Register::multiply_add(weight, x1, second[o]);
      }
    }
#pragma GCC unroll 16
    for (std::int64_t o = 0; o < kCount; ++o) {
      Register::store(first[o], y + o * kRows);
      Register::store(second[o], y + o * kRows + kWidth);
    }
  }
  // What is left after whole tiles.
  template <std::int64_t kCount>
  static HOLDFAST_INLINE void multiply_rest(std::int64_t left, const float* w, std::int64_t over, std::int64_t along,
                                            std::int64_t ins, const float* x, const float* bias, float* y) {
    if constexpr (kCount > 0) {
      if (left == kCount) return multiply_tile<kCount>(w, over, along, ins, x, bias, y);
      multiply_rest<kCount - 1>(left, w, over, along, ins, x, bias, y);
    }
  }
  static HOLDFAST_INLINE void multiply(const float* w, std::int64_t over, std::int64_t along, std::int64_t outs, std::int64_t ins,
                                       const float* x, const float* bias, float* y) {
    std::int64_t o = 0;
    for (; o + kTile <= outs; o += kTile)
      multiply_tile<kTile>(w + o * over, over, along, ins, x, bias != nullptr ? bias + o : nullptr, y + o * kRows);
    multiply_rest<kTile - 1>(outs - o, w + o * over, over, along, ins, x, bias != nullptr ? bias + o : nullptr, y + o * kRows);
  }
  static void apply(const Layer& layer, const float* x, float* y) {
    multiply(layer.weight, layer.ins, 1, layer.outs, layer.ins, x, layer.bias, y);
  }
  static void apply_transposed(const Layer& layer, const float* x, float* y) {
    multiply(layer.weight, 1, layer.ins, layer.ins, layer.outs, x, nullptr, y);
  }

  // exp(x) for x <= 0; what is below e^-87 counts as that.
  static HOLDFAST_INLINE Vector exponential(Vector x) {
    x = Register::greater(x, Register::all(-87.0f));
    const Vector n = Register::round(Register::multiply(x, Register::all(1.44269504088896341f)));
    Vector r = Register::multiply_add(n, Register::all(-0.693359375f), x);
    r = Register::multiply_add(n, Register::all(2.12194440e-4f), r);
    Vector p = Register::all(1.9875691500e-4f);
    p = Register::multiply_add(p, r, Register::all(1.3981999507e-3f));
    p = Register::multiply_add(p, r, Register::all(8.3334519073e-3f));
    p = Register::multiply_add(p, r, Register::all(4.1665795894e-2f));
    p = Register::multiply_add(p, r, Register::all(1.6666665459e-1f));
    p = Register::multiply_add(p, r, Register::all(5.0000001201e-1f));
    p = Register::multiply_add(p, Register::multiply(r, r), Register::add(r, Register::all(1.0f)));
    return Register::multiply(p, Register::power_of_two(n));
  }
  // log(1 + e) for e in [0, 1]: 2 artanh(q), q = e / (2 + e) <= 1/3.
  static HOLDFAST_INLINE Vector log_one_plus(Vector e) {
    const Vector q = Register::divide(e, Register::add(e, Register::all(2.0f))), square = Register::multiply(q, q);
    Vector p = Register::all(2.0f / 15);
    p = Register::multiply_add(p, square, Register::all(2.0f / 13));
    p = Register::multiply_add(p, square, Register::all(2.0f / 11));
    p = Register::multiply_add(p, square, Register::all(2.0f / 9));
    p = Register::multiply_add(p, square, Register::all(2.0f / 7));
    p = Register::multiply_add(p, square, Register::all(2.0f / 5));
    p = Register::multiply_add(p, square, Register::all(2.0f / 3));
    p = Register::multiply_add(p, square, Register::all(2.0f));
    return Register::multiply(p, q);
  }

  // Softplus and what its derivatives are made of. e: exp(-|beta x|); s: the logistic function of |beta x|; rise: that of beta x.
  struct Soft {
    Vector e, s, rise, value;
  };
  static HOLDFAST_INLINE Soft soften(Vector x, Vector beta) {
    const Vector zero = Register::all(0), one = Register::all(1), y = Register::multiply(x, beta);
    const Vector e = exponential(Register::lesser(y, Register::subtract(zero, y)));
    const Vector s = Register::divide(one, Register::add(one, e));
    const Vector rise = Register::where_positive(y, s, Register::multiply(e, s));
    return {e, s, rise, Register::add(Register::greater(x, zero), Register::divide(log_one_plus(e), beta))};
  }

  // z becomes s(z); `slope` s'(z), and `bend`, unless null, s''(z).
  static void activate(const Layer& layer, float* z, float* slope, float* bend) {
    const std::int64_t count = layer.outs * kRows;
    const Vector zero = Register::all(0), one = Register::all(1), least = Register::all(layer.slope);
    if (layer.bend == Bend::kLeaky) {
      for (std::int64_t i = 0; i < count; i += kWidth) {
        const Vector x = Register::load(z + i);
        const Vector d = Register::where_positive(x, one, least);
        Register::store(d, slope + i);
        Register::store(Register::where_positive(x, x, Register::multiply(x, least)), z + i);
        if (bend != nullptr) Register::store(zero, bend + i);
      }
      return;
    }
    const Vector beta = Register::all(layer.beta), share = Register::subtract(one, least);
    for (std::int64_t i = 0; i < count; i += kWidth) {
      const Vector x = Register::load(z + i);
      const Soft soft = soften(x, beta);
      Register::store(Register::multiply_add(share, soft.rise, least), slope + i);
      if (bend != nullptr)
        Register::store(
            Register::multiply(Register::multiply(share, beta), Register::multiply(Register::multiply(soft.e, soft.s), soft.s)),
            bend + i);
      Register::store(Register::multiply_add(x, least, Register::multiply(share, soft.value)), z + i);
    }
  }

  // Rows [rows, n] to lanes [n, kRows]; what is missing is 0.
  static void into_lanes(const float* from, std::int64_t rows, std::int64_t n, float* to) {
    if (rows == kRows && n >= 8) {
      for (std::int64_t row = 0; row < kRows; row += 8) {
        for (std::int64_t i = 0; i < n; i += 8) {
          const std::int64_t at = i + 8 <= n ? i : n - 8;  // the last square overlaps the one before
          Register::transpose(from + row * n + at, n, to + at * kRows + row, kRows);
        }
      }
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t row = 0; row < kRows; ++row) to[i * kRows + row] = row < rows ? from[row * n + i] : 0.0f;
    }
  }
  static void out_of_lanes(const float* from, std::int64_t rows, std::int64_t n, float* to) {
    if (rows == kRows && n >= 8) {
      for (std::int64_t row = 0; row < kRows; row += 8) {
        for (std::int64_t i = 0; i < n; i += 8) {
          const std::int64_t at = i + 8 <= n ? i : n - 8;
          Register::transpose(from + at * kRows + row, kRows, to + row * n + at, n);
        }
      }
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < n; ++i) to[row * n + i] = from[i * kRows + row];
    }
  }

  // x becomes x scale + shift, element by element.
  static void scale_inputs(const Chain& chain, const float* shift, float* x) {
    if (chain.scale == nullptr) return;
    for (std::int64_t i = 0; i < chain.layers[0].ins; ++i) {
      const Vector factor = Register::all(chain.scale[i]), offset = Register::all(shift != nullptr ? shift[i] : 0.0f);
      for (std::int64_t lane = i * kRows; lane < (i + 1) * kRows; lane += kWidth)
        Register::store(Register::multiply_add(Register::load(x + lane), factor, offset), x + lane);
    }
  }

  // to <- a b, and to <- a b + c.
  static HOLDFAST_INLINE void products(const float* a, const float* b, std::int64_t units, float* to) {
    for (std::int64_t i = 0; i < units * kRows; i += kWidth)
      Register::store(Register::multiply(Register::load(a + i), Register::load(b + i)), to + i);
  }
  static HOLDFAST_INLINE void products_and(const float* a, const float* b, const float* c, std::int64_t units, float* to) {
    for (std::int64_t i = 0; i < units * kRows; i += kWidth)
      Register::store(Register::multiply_add(Register::load(a + i), Register::load(b + i), Register::load(c + i)), to + i);
  }

  // Slopes of all hidden units come first in `kept`, then, where something bends, their bends: s'' at first, and times g after
  // pull.
  static void forward(const Chain& chain, const float* points, std::int64_t rows, bool twice, float* kept, float* logits) {
    float *x = chain.one, *y = chain.other;
    into_lanes(points, rows, chain.layers[0].ins, x);
    scale_inputs(chain, chain.shift, x);
    float* slope = kept;
    float* bend = twice && chain.bends ? kept + chain.hidden * kRows : nullptr;
    for (const Layer* layer = chain.layers; layer < chain.layers + chain.count; ++layer) {
      apply(*layer, x, y);
      if (layer->bend != Bend::kNone) {
        activate(*layer, y, slope, bend);
        slope += layer->outs * kRows;
        if (bend != nullptr) bend += layer->outs * kRows;
      }
      swap(x, y);
    }
    out_of_lanes(x, rows, chain.layers[chain.count - 1].outs, logits);
  }

  static void pull(const Chain& chain, const float* cotangent, std::int64_t rows, bool twice, float* kept, float* gradient) {
    float *x = chain.one, *y = chain.other;
    into_lanes(cotangent, rows, chain.layers[chain.count - 1].outs, x);
    const float* slope = kept + chain.hidden * kRows;
    float* bend = kept + 2 * chain.hidden * kRows;
    for (const Layer* layer = chain.layers + chain.count - 1;; --layer) {
      apply_transposed(*layer, x, y);
      if (layer == chain.layers) break;
      slope -= layer->ins * kRows;
      bend -= layer->ins * kRows;
      if (twice && chain.bends) products(bend, y, layer->ins, bend);
      products(slope, y, layer->ins, x);
    }
    scale_inputs(chain, nullptr, y);
    out_of_lanes(y, rows, chain.layers[0].ins, gradient);
  }

  static void push(const Chain& chain, const float* direction, std::int64_t rows, const float* kept, float* change) {
    float *x = chain.one, *y = chain.other;
    into_lanes(direction, rows, chain.layers[0].ins, x);
    scale_inputs(chain, nullptr, x);
    const float *slope = kept, *bend = kept + chain.hidden * kRows;
    float* curved = chain.curved;
    for (const Layer* layer = chain.layers; layer < chain.layers + chain.count; ++layer) {
      multiply(layer->weight, layer->ins, 1, layer->outs, layer->ins, x, nullptr, y);
      if (layer->bend == Bend::kNone) break;
      if (chain.bends) {
        products(bend, y, layer->outs, curved);
        bend += layer->outs * kRows;
        curved += layer->outs * kRows;
      }
      products(slope, y, layer->outs, x);
      slope += layer->outs * kRows;
    }
    out_of_lanes(y, rows, chain.layers[chain.count - 1].outs, change);
  }

  static void pull_again(const Chain& chain, const float* cotangent, std::int64_t rows, const float* kept, float* gradient) {
    float *x = chain.one, *y = chain.other;
    into_lanes(cotangent, rows, chain.layers[chain.count - 1].outs, x);
    const float *slope = kept + chain.hidden * kRows, *curved = chain.curved + chain.hidden * kRows;
    for (const Layer* layer = chain.layers + chain.count - 1;; --layer) {
      apply_transposed(*layer, x, y);
      if (layer == chain.layers) break;
      slope -= layer->ins * kRows;
      curved -= layer->ins * kRows;
      if (chain.bends) {
        products_and(slope, y, curved, layer->ins, x);
      } else {
        products(slope, y, layer->ins, x);
      }
    }
    scale_inputs(chain, nullptr, y);
    out_of_lanes(y, rows, chain.layers[0].ins, gradient);
  }

  // Lanes are units from here on. Sums over units have kUnits lanes, whatever the registers' width, and are added up in their
  // order.
  static constexpr std::int64_t kParts = kUnits / kWidth;
  static HOLDFAST_INLINE float sum(const Vector* parts) {
    float lanes[kUnits];
    for (std::int64_t i = 0; i < kParts; ++i) Register::store(parts[i], lanes + i * kWidth);
    float all = 0;
    for (std::int64_t i = 0; i < kUnits; ++i) all += lanes[i];
    return all;
  }

  struct Bent {
    Vector value, slope;
  };
  static HOLDFAST_INLINE Bent bend(const Shallow& network, Vector x) {
    const Vector least = Register::all(network.slope), one = Register::all(1);
    if (network.bend == Bend::kLeaky)
      return {Register::where_positive(x, x, Register::multiply(x, least)), Register::where_positive(x, one, least)};
    const Vector share = Register::subtract(one, least);
    const Soft soft = soften(x, Register::all(network.beta));
    return {Register::multiply_add(x, least, Register::multiply(share, soft.value)),
            Register::multiply_add(share, soft.rise, least)};
  }

  static void differ(const Shallow& network, const float* row, const Change* changes, const std::int64_t* ends,
                     std::int64_t count, float* scratch, float* difference, float* slopes) {
    const std::int64_t units = network.units;
    float *z = scratch, *value = scratch + units;
    for (std::int64_t u = 0; u < units; u += kWidth) {
      Vector x = Register::load(network.bias + u);
      for (std::int64_t i = 0; i < network.ins; ++i) {
        if (row[i] != 0) x = Register::multiply_add(Register::all(row[i]), Register::load(network.columns + i * units + u), x);
      }
      const Bent bent = bend(network, x);
      Register::store(x, z + u);
      Register::store(bent.value, value + u);
      Register::store(bent.slope, slopes + u);
    }
    const Change* change = changes;
    for (std::int64_t r = 0; r < count; ++r) {
      slopes += units;
      const Change* const end = changes + ends[r];
      Vector parts[kParts];
      for (std::int64_t i = 0; i < kParts; ++i) parts[i] = Register::all(0);
      for (std::int64_t u = 0; u < units; u += kUnits) {
#pragma GCC unroll 2
        for (std::int64_t i = 0; i < kParts; ++i) {
          const std::int64_t at = u + i * kWidth;
          Vector x = Register::load(z + at);
          for (const Change* one = change; one < end; ++one)
            x = Register::multiply_add(Register::all(one->by), Register::load(network.columns + one->column * units + at), x);
          const Bent bent = bend(network, x);
          Register::store(bent.slope, slopes + at);
          parts[i] = Register::multiply_add(Register::load(network.output + at),
                                            Register::subtract(bent.value, Register::load(value + at)), parts[i]);
        }
      }
      difference[r] = sum(parts);
      change = end;
    }
  }

  static void gather(const Shallow& network, const float* cotangent, const float* slopes, std::int64_t count, float* hidden) {
    for (std::int64_t u = 0; u < network.units; u += kWidth) {
      Vector all = Register::all(0);
      for (std::int64_t r = 0; r < count; ++r)
        all = Register::multiply_add(Register::all(cotangent[r]), Register::load(slopes + r * network.units + u), all);
      Register::store(Register::multiply_add(Register::load(network.output + u), all, Register::load(hidden + u)), hidden + u);
    }
  }

  static float to_input(const Shallow& network, const float* hidden, std::int64_t column) {
    Vector parts[kParts];
    for (std::int64_t i = 0; i < kParts; ++i) parts[i] = Register::all(0);
    for (std::int64_t u = 0; u < network.units; u += kUnits) {
      for (std::int64_t i = 0; i < kParts; ++i) {
        const std::int64_t at = u + i * kWidth;
        parts[i] =
            Register::multiply_add(Register::load(hidden + at), Register::load(network.columns + column * network.units + at), parts[i]);
      }
    }
    return sum(parts);
  }

  static HOLDFAST_INLINE void swap(float*& a, float*& b) {
    float* const before = a;
    a = b;
    b = before;
  }
};

}  // namespace holdfast::model::chain
