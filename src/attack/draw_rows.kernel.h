// draw_moves_in_batches() of draw.h for a block of rows, without frozen elements. Written for the CPU and for GPUs
// (core/row_kernels.h). The streams are those of core/rng.h: Philox 4x32-10, whose counter is (number of the four words, stream).

template <class Number>
struct DrawArguments {
  const Index* ids;  // [rows]: the streams
  Number* moves;     // [rows, n]
  Index rows;
  unsigned key[2];
  int n, lanes, per_block;
  int norm;  // 0: l2, 1: linf, 2: l1
  int on_sphere;
  double epsilon;
};

// Word `index` of a stream.
inline unsigned stream_word(unsigned key, unsigned other_key, Index stream, unsigned index) {
  unsigned long long a = index / 4, b = 0, c = static_cast<unsigned long long>(stream) & 0xFFFFFFFFu,
                     d = static_cast<unsigned long long>(stream) >> 32;
  for (int round = 0; round < 10; ++round) {
    const unsigned long long left = a * 0xD2511F53u, right = c * 0xCD9E8D57u;
    a = (right >> 32) ^ b ^ key;
    b = right & 0xFFFFFFFFu;
    c = (left >> 32) ^ d ^ other_key;
    d = left & 0xFFFFFFFFu;
    key += 0x9E3779B9u;
    other_key += 0xBB67AE85u;
  }
  return static_cast<unsigned>(index % 4 == 0 ? a : index % 4 == 1 ? b : index % 4 == 2 ? c : d);
}

inline double uniform_of(unsigned word) {
  return static_cast<double>(word >> 8) * (1.0 / 16777216.0);
}

template <class Number>
double draw_element(const DrawArguments<Number>& a, Index stream, int i) {
  const auto word = [&](int index) { return stream_word(a.key[0], a.key[1], stream, static_cast<unsigned>(index)); };
  if (a.norm == 1) return uniform_of(word(i)) * 2 - 1;
  if (a.norm == 2) {
    const double size = -log(1 - uniform_of(word(2 * i)));
    return word(2 * i + 1) % 2 == 0 ? size : -size;
  }
  // Normal numbers come in pairs.
  const int pair = i / 2 * 2;
  const double radius = sqrt(log(1 - uniform_of(word(pair))) * -2), angle = uniform_of(word(pair + 1)) * 6.283185307179586476925;
  return radius * (i % 2 == 0 ? cos(angle) : sin(angle));
}

template <class Number>
void draw_block(const DrawArguments<Number>& a, Index block, char* shared) {
  const Index first = block * a.per_block;
  const int rows = static_cast<int>(a.rows - first < a.per_block ? a.rows - first : a.per_block), lanes = a.lanes;
  double* sizes = reinterpret_cast<double*>(shared);
  const int is_scaled = a.norm != 1 || a.on_sphere;

  HOLDFAST_EACH(t, rows * lanes) {
    const Index stream = a.ids[first + t / lanes];
    double size = 0;
    for (int i = t % lanes; is_scaled && i < a.n; i += lanes) {
      const double element = draw_element(a, stream, i), magnitude = fabs(element);
      if (a.norm == 0) size += element * element;
      if (a.norm == 1) size = magnitude > size ? magnitude : size;
      if (a.norm == 2) size += magnitude;
    }
    sizes[t] = size;
  }
  HOLDFAST_WAIT
  for (int half = lanes / 2; half > 0; half /= 2) {
    HOLDFAST_EACH(t, rows * half) {
      const int at = t / half * lanes + t % half;
      const double other = sizes[at + half];
      sizes[at] = a.norm != 1 ? sizes[at] + other : other > sizes[at] ? other : sizes[at];
    }
    HOLDFAST_WAIT
  }
  HOLDFAST_EACH(t, rows * lanes) {
    const int row = t / lanes;
    const Index stream = a.ids[first + row];
    double scale = 1;
    if (is_scaled) {
      const double size = a.norm == 0 ? sqrt(sizes[row * lanes]) : sizes[row * lanes];
      const int words = a.norm == 2 ? 2 * a.n : a.norm == 0 ? (a.n + 1) / 2 * 2 : a.n;
      const double share =
          a.on_sphere ? 1 : pow(uniform_of(stream_word(a.key[0], a.key[1], stream, static_cast<unsigned>(words))), 1.0 / a.n);
      scale = size > 0 ? share / size : 0;
    }
    for (int i = t % lanes; i < a.n; i += lanes)
      a.moves[(first + row) * a.n + i] = static_cast<Number>(draw_element(a, stream, i) * scale * a.epsilon);
  }
}
