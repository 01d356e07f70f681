// The passes of linear_chain.h for a block of rows: the map of a chain of linear layers, and its pullback. Written for the CPU
// and for GPUs (core/row_kernels.h). What belongs to a row lies kBlockRows apart.

enum { kBlockRows = 8, kMostChainLayers = 8 };
enum { kChainNone, kChainLeaky, kChainSoftplus };
enum { kExplainProbability, kExplainLogit, kExplainCrossEntropy };

template <class Number>
struct ChainRowsLayer {
  const Number *weight, *bias;  // [outs, ins]; [outs], or null
  int ins, outs, bend;
  Number slope, beta;
};

template <class Number>
struct ChainRowsArguments {
  ChainRowsLayer<Number> layers[kMostChainLayers];
  const Number *scale, *shift;  // of the inputs, or null
  const Number* points;         // [rows, ins]
  const Index* targets;         // [rows]
  Number *logits, *maps, *log_scale;
  // What the pullback needs of the map's passes, [hidden, rows] and [classes, rows]; null: nothing. `bends`: null also where no
  // activation has a second derivative.
  Number *slopes, *bends, *p, *r;
  // Of the pullback: [rows, ins]; `signs`: the maps with their signs, where they are magnitudes; else null.
  const Number *direction, *signs;
  Number* gradient;
  Index rows;
  int scale_step, shift_step;  // 0: one number for all
  int layer_count, hidden, widest, quantity;
};

// y = W x + bias, and y = W' x.
template <class Number>
void apply_layer(const ChainRowsLayer<Number>& layer, const Number* bias, const Number* x, Number* y) {
  HOLDFAST_EACH(t, layer.outs * kBlockRows) {
    const int row = t % kBlockRows, out = t / kBlockRows;
    const Number* weight = layer.weight + static_cast<Index>(out) * layer.ins;
    Number sum = bias ? bias[out] : Number(0);
    for (int i = 0; i < layer.ins; ++i) sum += weight[i] * x[i * kBlockRows + row];
    y[t] = sum;
  }
  HOLDFAST_WAIT
}
template <class Number>
void apply_transposed(const ChainRowsLayer<Number>& layer, const Number* x, Number* y) {
  HOLDFAST_EACH(t, layer.ins * kBlockRows) {
    const int row = t % kBlockRows, in = t / kBlockRows;
    Number sum = 0;
    for (int i = 0; i < layer.outs; ++i) sum += layer.weight[static_cast<Index>(i) * layer.ins + in] * x[i * kBlockRows + row];
    y[t] = sum;
  }
  HOLDFAST_WAIT
}

template <class Number>
int rows_of_block(const ChainRowsArguments<Number>& a, Index first) {
  const int left = static_cast<int>(a.rows - first), most = kBlockRows;
  return left < most ? left : most;
}

// The inputs' own scale, element `in`.
template <class Number>
Number scale_of(const ChainRowsArguments<Number>& a, int in) {
  return a.scale ? a.scale[in * a.scale_step] : Number(1);
}

// z becomes s(z); returns s'(z), and s''(z) in `bend`.
template <class Number>
Number activate(const ChainRowsLayer<Number>& layer, Number& z, Number& bend) {
  const Number x = z, least = layer.slope;
  bend = 0;
  if (layer.bend == kChainLeaky) {
    z = x > 0 ? x : x * least;
    return x > 0 ? Number(1) : least;
  }
  const Number y = x * layer.beta, share = 1 - least, e = exp(y < 0 ? y : -y), s = 1 / (1 + e), rise = y > 0 ? s : e * s;
  z = x * least + share * ((x > 0 ? x : Number(0)) + log1p(e) / layer.beta);
  bend = share * layer.beta * e * s * s;
  return share * rise + least;
}

// The cotangent on a row's logits (logit_cotangent.h), in place, and the logarithm of its scale.
template <class Number>
void take_cotangent(const ChainRowsArguments<Number>& a, Index row, int lane, int classes, Number* z) {
  const int c = static_cast<int>(a.targets[row]);
  if (c < 0 || c >= classes) {  // no such class: a map that nobody takes for one
    for (int j = 0; j < classes; ++j) z[j * kBlockRows + lane] = log(Number(-1));
    a.log_scale[row] = 0;
    return;
  }
  if (a.quantity == kExplainLogit) {
    for (int j = 0; j < classes; ++j) z[j * kBlockRows + lane] = j == c ? 1 : 0;
    a.log_scale[row] = 0;
    return;
  }
  const Number own_logit = z[c * kBlockRows + lane];
  Number highest = z[(c == 0 ? 1 : 0) * kBlockRows + lane];
  for (int j = 0; j < classes; ++j) {
    if (j != c && z[j * kBlockRows + lane] > highest) highest = z[j * kBlockRows + lane];
  }
  const Number top = highest > own_logit ? highest : own_logit, own = exp(own_logit - top), scale = exp(highest - top);
  Number others = 0;
  for (int j = 0; j < classes; ++j) others += j == c ? Number(0) : exp(z[j * kBlockRows + lane] - highest);
  const Number total = own + scale * others, log_total = top + log(total);
  const Number sign = a.quantity == kExplainProbability ? 1 : -1;
  for (int j = 0; j < classes; ++j) {
    const Number r = j == c ? Number(0) : exp(z[j * kBlockRows + lane] - highest);
    if (a.p) {
      a.p[j * a.rows + row] = (j == c ? own : scale * r) / total;
      a.r[j * a.rows + row] = r;
    }
    z[j * kBlockRows + lane] = j == c ? sign * others : -sign * r;
  }
  a.log_scale[row] = highest - log_total + (a.quantity == kExplainProbability ? own_logit - log_total : Number(0));
}

template <class Number>
void explain_block(const ChainRowsArguments<Number>& a, Index block, char* shared) {
  const Index first = block * kBlockRows;
  const int rows = rows_of_block(a, first);
  const int count = a.layer_count, ins = a.layers[0].ins, classes = a.layers[count - 1].outs;
  Number *x = reinterpret_cast<Number*>(shared), *y = x + a.widest * kBlockRows, *slopes = y + a.widest * kBlockRows,
         *bends = slopes + a.hidden * kBlockRows;

  HOLDFAST_EACH(t, ins * kBlockRows) {
    const int in = t % ins, row = t / ins;
    const Number point = row < rows ? a.points[(first + row) * ins + in] : Number(0);
    x[in * kBlockRows + row] = point * scale_of(a, in) + (a.shift ? a.shift[in * a.shift_step] : Number(0));
  }
  HOLDFAST_WAIT
  for (int l = 0, unit = 0; l < count; ++l) {
    const ChainRowsLayer<Number>& layer = a.layers[l];
    apply_layer(layer, layer.bias, x, y);
    if (layer.bend != kChainNone) {
      HOLDFAST_EACH(t, layer.outs * kBlockRows)
      slopes[unit * kBlockRows + t] = activate(layer, y[t], bends[unit * kBlockRows + t]);
      HOLDFAST_WAIT
      unit += layer.outs;
    }
    Number* const before = x;
    x = y;
    y = before;
  }
  HOLDFAST_EACH(row, rows) {
    for (int j = 0; j < classes; ++j) a.logits[(first + row) * classes + j] = x[j * kBlockRows + row];
    take_cotangent(a, first + row, row, classes, x);
  }
  HOLDFAST_EACH(t, classes * kBlockRows) {
    if (t % kBlockRows >= rows) x[t] = 0;
  }
  HOLDFAST_WAIT
  for (int l = count - 1, unit = a.hidden; l >= 0; --l) {
    apply_transposed(a.layers[l], x, y);
    if (l == 0) break;
    const int units = a.layers[l].ins;
    unit -= units;
    HOLDFAST_EACH(t, units * kBlockRows) {
      const Index row = first + t % kBlockRows, at = (unit + t / kBlockRows) * a.rows + row;
      const Number slope = slopes[unit * kBlockRows + t];
      x[t] = slope * y[t];
      if (a.slopes && row < a.rows) {
        a.slopes[at] = slope;
        if (a.bends) a.bends[at] = bends[unit * kBlockRows + t] * y[t];
      }
    }
    HOLDFAST_WAIT
  }
  HOLDFAST_EACH(t, ins * rows) {
    const int in = t % ins, row = t / ins;
    a.maps[first * ins + t] = y[in * kBlockRows + row] * scale_of(a, in);
  }
}

template <class Number>
void pull_block(const ChainRowsArguments<Number>& a, Index block, char* shared) {
  const Index first = block * kBlockRows;
  const int rows = rows_of_block(a, first);
  const int count = a.layer_count, ins = a.layers[0].ins, classes = a.layers[count - 1].outs;
  Number *x = reinterpret_cast<Number*>(shared), *y = x + a.widest * kBlockRows, *curved = y + a.widest * kBlockRows;

  HOLDFAST_EACH(t, ins * kBlockRows) {
    const int in = t % ins, row = t / ins;
    Number way = row < rows ? a.direction[first * ins + t] * scale_of(a, in) : Number(0);
    if (a.signs && row < rows) {
      const Number map = a.signs[first * ins + t];
      way = map > 0 ? way : map < 0 ? -way : map * way;
    }
    x[in * kBlockRows + row] = way;
  }
  HOLDFAST_WAIT
  for (int l = 0, unit = 0; l < count; ++l) {
    const ChainRowsLayer<Number>& layer = a.layers[l];
    const Number* const no_bias = nullptr;
    apply_layer(layer, no_bias, x, y);
    if (layer.bend == kChainNone) break;
    HOLDFAST_EACH(t, layer.outs * kBlockRows) {
      const Index row = first + t % kBlockRows, at = (unit + t / kBlockRows) * a.rows + row;
      const bool is_row = row < a.rows;
      if (a.bends) curved[unit * kBlockRows + t] = is_row ? a.bends[at] * y[t] : Number(0);
      x[t] = is_row ? a.slopes[at] * y[t] : Number(0);
    }
    HOLDFAST_WAIT
    unit += layer.outs;
  }
  // y: the change of the logits. The gradient of <change, cotangent> by the logits goes back (softmax_rows.h).
  HOLDFAST_EACH(lane, kBlockRows) {
    const Index row = first + lane;
    if (a.quantity == kExplainLogit || row >= a.rows || a.targets[row] < 0 || a.targets[row] >= classes) {
      for (int j = 0; j < classes; ++j) x[j * kBlockRows + lane] = 0;
    } else {
      const int c = static_cast<int>(a.targets[row]);
      const Number own = y[c * kBlockRows + lane], sign = a.quantity == kExplainProbability ? 1 : -1;
      const Number times = a.quantity == kExplainProbability ? 2 : 1;
      Number sum = 0;
      for (int j = 0; j < classes; ++j) sum += (own - y[j * kBlockRows + lane]) * a.r[j * a.rows + row];
      for (int j = 0; j < classes; ++j) {
        const Number change = (own - y[j * kBlockRows + lane]) * a.r[j * a.rows + row];
        x[j * kBlockRows + lane] = sign * (change - times * a.p[j * a.rows + row] * sum);
      }
      if (a.quantity == kExplainProbability) x[c * kBlockRows + lane] += sign * sum;
    }
  }
  HOLDFAST_WAIT
  for (int l = count - 1, unit = a.hidden; l >= 0; --l) {
    apply_transposed(a.layers[l], x, y);
    if (l == 0) break;
    const int units = a.layers[l].ins;
    unit -= units;
    HOLDFAST_EACH(t, units * kBlockRows) {
      const Index row = first + t % kBlockRows, at = (unit + t / kBlockRows) * a.rows + row;
      x[t] = row < a.rows ? a.slopes[at] * y[t] + (a.bends ? curved[unit * kBlockRows + t] : Number(0)) : Number(0);
    }
    HOLDFAST_WAIT
  }
  HOLDFAST_EACH(t, ins * rows) {
    const int in = t % ins, row = t / ins;
    a.gradient[first * ins + t] = y[in * kBlockRows + row] * scale_of(a, in);
  }
}
