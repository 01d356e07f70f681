// descend_batch() of batch_step.h for a block of rows, l2 and linf, without frozen elements. Written for the CPU and for GPUs
// (core/row_kernels.h). A row's elements are dealt to `lanes` threads; what they find is added up in pairs, so that sums do not
// depend on the device.

// Points may be the same memory as next.
template <class Number>
struct StepArguments {
  const Number *points, *gradient, *clean;  // [rows, n]; no gradient: the points are only projected
  Number* next;                             // [rows, n]
  double* flags;                            // [rows]: sums of StepFlag
  Index rows;
  int n, lanes, per_block;  // per_block * lanes: threads of a block
  int corners;              // whether the norm is linf, else l2
  int has_box, non_negative;
  double step, epsilon, low, high, half_unit, sum_rounding, rounding;
};

// parts[row * lanes] becomes the sum of the row's lanes.
inline void add_lanes(double* parts, int rows, int lanes) {
  for (int half = lanes / 2; half > 0; half /= 2) {
    HOLDFAST_EACH(t, rows * half) {
      const int at = t / half * lanes + t % half;
      parts[at] += parts[at + half];
    }
    HOLDFAST_WAIT
  }
}

template <class Number>
void step_block(const StepArguments<Number>& a, Index block, char* shared) {
  const Index first = block * a.per_block;
  const int rows = static_cast<int>(a.rows - first < a.per_block ? a.rows - first : a.per_block);
  const int threads = a.per_block * a.lanes, n = a.n, lanes = a.lanes;
  double *sizes = reinterpret_cast<double*>(shared), *broken = sizes + threads, *outside = broken + threads,
         *negative = outside + threads, *reach = negative + threads, *origins = reach + threads;

  HOLDFAST_EACH(t, rows * lanes) {
    const Index begin = (first + t / lanes) * n;
    double size = 0, bad = 0, below = 0;
    for (int i = t % lanes; i < n; i += lanes) {
      const Number slope = a.gradient ? a.gradient[begin + i] : Number(0);
      if (!isfinite(slope)) {
        bad = 1;
      } else {
        size += a.corners ? fabs(static_cast<double>(slope)) : static_cast<double>(slope) * static_cast<double>(slope);
      }
      if (a.clean[begin + i] < 0) below = 1;
    }
    sizes[t] = size;
    broken[t] = bad;
    negative[t] = below;
  }
  HOLDFAST_WAIT
  add_lanes(sizes, rows, lanes);
  add_lanes(broken, rows, lanes);
  if (a.non_negative) add_lanes(negative, rows, lanes);

  // The step, what the threat allows beside the ball, and for linf the ball.
  HOLDFAST_EACH(t, rows * lanes) {
    const int own = t / lanes * lanes;
    const Index begin = (first + t / lanes) * n;
    const double size = a.corners ? sizes[own] : sqrt(sizes[own]);
    const bool stays = !(size > 0) || isinf(size);
    const Number scale = static_cast<Number>(a.step / size);
    double moved = 0, ball = 0, origin = 0;
    for (int i = t % lanes; i < n; i += lanes) {
      const Number from = a.points[begin + i], clean = a.clean[begin + i];
      Number slope = a.gradient ? a.gradient[begin + i] : Number(0);
      if (!isfinite(slope)) slope = 0;
      Number next = from;
      if (!stays && a.corners)
        next = static_cast<Number>(from - (slope > 0 ? a.step : slope < 0 ? -a.step : 0.0));
      else if (!stays)
        next = from - slope * scale;
      Number inside = next;
      if (a.has_box) {
        if (inside < static_cast<Number>(a.low)) inside = static_cast<Number>(a.low);
        if (inside > static_cast<Number>(a.high)) inside = static_cast<Number>(a.high);
      }
      if (a.non_negative && negative[own] == 0 && inside < 0) inside = 0;
      if (inside != next) moved = 1;
      const double center = static_cast<double>(clean), way = static_cast<double>(inside) - center;
      if (a.corners) {
        const double size_here = fabs(center) > a.epsilon ? fabs(center) : a.epsilon;
        if (fabs(way) > a.epsilon + a.rounding * size_here) moved = 1;
        if (fabs(way) > a.epsilon) {
          inside = static_cast<Number>(center + (way > 0 ? a.epsilon : -a.epsilon));
          // The sum was rounded, perhaps outwards.
          if (fabs(static_cast<double>(inside) - center) > a.epsilon) inside = nextafter(inside, clean);
        }
      } else {
        ball += way * way;
        origin += center * center;
      }
      a.next[begin + i] = inside;
    }
    outside[t] = moved;
    reach[t] = ball;
    origins[t] = origin;
  }
  HOLDFAST_WAIT
  add_lanes(outside, rows, lanes);
  if (!a.corners) {
    add_lanes(reach, rows, lanes);
    add_lanes(origins, rows, lanes);
    // Rounding of a point moves it by at most half a unit of its size; the radius is smaller by that.
    HOLDFAST_EACH(t, rows * lanes) {
      const int own = t / lanes * lanes;
      const Index begin = (first + t / lanes) * n;
      const double size = sqrt(reach[own]);
      if (size > a.epsilon) {
        double radius = a.epsilon - (a.half_unit + a.sum_rounding) * (sqrt(origins[own]) + a.epsilon);
        if (radius < 0) radius = 0;
        for (int i = t % lanes; i < n; i += lanes) {
          const double center = static_cast<double>(a.clean[begin + i]);
          a.next[begin + i] = static_cast<Number>(center + (static_cast<double>(a.next[begin + i]) - center) * (radius / size));
        }
      }
    }
  }
  HOLDFAST_EACH(row, rows) {
    const int own = row * lanes;
    const double size = a.corners ? sizes[own] : sqrt(sizes[own]);
    const bool moved = outside[own] > 0 || (!a.corners && sqrt(reach[own]) > a.epsilon * (1 + a.rounding));
    const bool still = !(size > 0) || isinf(size);
    a.flags[first + row] = (moved ? 1 : 0) + (broken[own] > 0 ? 2 : 0) + (still ? 4 : 0);
  }
}
