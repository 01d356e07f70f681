// BatchJudge::read() of batch_judge.h for a block of rows. Written for the CPU and for GPUs (core/row_kernels.h). Which elements
// are the top k is found by counting: an element is one if fewer than k are larger, or as large and before it.

enum JudgedWindow { kNoWindow, kCleanWindow, kMovedWindow };

template <class Number>
struct JudgeArguments {
  const Number* maps;                 // [rows, n]
  const Number* logits;               // [rows, classes]
  const Index *owners, *predictions;  // [rows] and [samples]
  const float *top, *compared;        // [samples, n]: 0 or 1
  double *values, *flags;             // [rows]
  Index rows;
  int n, classes, k, lanes, per_block;
  int window;                 // JudgedWindow
  int height, width, radius;  // of kMovedWindow, on grids
  double margin, logit_rounding;
};

// What a row's lanes counted, added up at parts[row * lanes].
inline void add_counts(int* parts, int rows, int lanes) {
  for (int half = lanes / 2; half > 0; half /= 2) {
    HOLDFAST_EACH(t, rows * half) {
      const int at = t / half * lanes + t % half;
      parts[at] += parts[at + half];
    }
    HOLDFAST_WAIT
  }
}

// Whether any member lies within the radius of feature i of its plane.
inline bool is_near(const unsigned char* members, int i, int height, int width, int radius) {
  const int plane = i / (height * width) * height * width, y = (i - plane) / width, x = (i - plane) % width;
  for (int v = y - radius < 0 ? 0 : y - radius; v <= y + radius && v < height; ++v) {
    for (int u = x - radius < 0 ? 0 : x - radius; u <= x + radius && u < width; ++u) {
      if (members[plane + v * width + u]) return true;
    }
  }
  return false;
}

template <class Number>
void judge_block(const JudgeArguments<Number>& a, Index block, char* shared) {
  const Index first = block * a.per_block;
  const int rows = static_cast<int>(a.rows - first < a.per_block ? a.rows - first : a.per_block);
  const int threads = a.per_block * a.lanes, n = a.n, lanes = a.lanes;
  Number* sizes = reinterpret_cast<Number*>(shared);
  int *broken = reinterpret_cast<int*>(sizes + a.per_block * n), *kept = broken + threads, *common = kept + threads;
  unsigned char* members = reinterpret_cast<unsigned char*>(common + threads);

  HOLDFAST_EACH(t, rows * lanes) {
    const int row = t / lanes;
    int bad = 0;
    for (int i = t % lanes; i < n; i += lanes) {
      const Number value = a.maps[(first + row) * n + i];
      if (!isfinite(value)) bad = 1;
      sizes[row * n + i] = isfinite(value) ? (value < 0 ? -value : value) : Number(0);
    }
    broken[t] = bad;
  }
  HOLDFAST_WAIT
  HOLDFAST_EACH(t, rows * lanes) {
    const int row = t / lanes;
    const Index sample = a.owners[first + row] * n;
    const Number* size = sizes + row * n;
    int own = 0, near = 0;
    for (int i = t % lanes; i < n; i += lanes) {
      const Number here = size[i];
      int before = 0;
      for (int j = 0; j < i; ++j) before += size[j] >= here ? 1 : 0;
      for (int j = i + 1; j < n; ++j) before += size[j] > here ? 1 : 0;
      const bool is_top = before < a.k;
      members[row * n + i] = is_top ? 1 : 0;
      if (is_top && a.top[sample + i] > 0) ++own;
      if (is_top && a.window == kCleanWindow && a.compared[sample + i] > 0) ++near;
    }
    kept[t] = own;
    common[t] = near;
  }
  HOLDFAST_WAIT
  if (a.window == kMovedWindow) {
    HOLDFAST_EACH(t, rows * lanes) {
      const int row = t / lanes;
      const Index sample = a.owners[first + row] * n;
      int near = 0;
      for (int i = t % lanes; i < n; i += lanes) {
        if (a.top[sample + i] > 0 && is_near(members + row * n, i, a.height, a.width, a.radius)) ++near;
      }
      common[t] = near;
    }
    HOLDFAST_WAIT
  }
  add_counts(broken, rows, lanes);
  add_counts(kept, rows, lanes);
  if (a.window != kNoWindow) add_counts(common, rows, lanes);

  HOLDFAST_EACH(row, rows) {
    const Number* logits = a.logits + (first + row) * a.classes;
    const Index predicted = a.predictions[a.owners[first + row]];
    const double own = static_cast<double>(logits[predicted]);
    bool undefined = false;
    double best_other = log(0.0);
    for (int j = 0; j < a.classes; ++j) {
      const double other = static_cast<double>(logits[j]);
      if (j != predicted && other != other) undefined = true;
      if (j != predicted && other > best_other) best_other = other;
    }
    const bool flips = !undefined && best_other > own;
    const bool is_certain = !undefined && own - best_other >= a.margin + a.logit_rounding * fabs(own);
    const int at = row * lanes, same = kept[at];
    a.values[first + row] = static_cast<double>(a.window == kNoWindow ? same : common[at]) / static_cast<double>(a.k);
    a.flags[first + row] = (flips ? 0 : 1) + (is_certain ? 2 : 0) + (broken[at] > 0 ? 0 : 4) + (same == a.k ? 8 : 0);
  }
}
