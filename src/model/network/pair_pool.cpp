#include "operations.h"

#include <torch/csrc/autograd/custom_function.h>

#include "holdfast/core/torch.h"

namespace holdfast::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const std::vector<std::int64_t> kTwo{2, 2}, kNone{0, 0}, kOne{1, 1};

// Chooses as torch does: the first of equal values wins, and NaN wins over everything.
template <class Number>
void take_if_larger(Number value, std::int64_t position, Number& best, std::int64_t& at) {
  const bool larger = value > best || value != value;
  best = larger ? value : best;
  at = larger ? position : at;
}

template <class Number>
void pool_planes(const Number* in, std::int64_t planes, std::int64_t height, std::int64_t width, Number* out,
                 std::int64_t* index) {
  for (std::int64_t plane = 0; plane < planes; ++plane, in += height * width) {
    for (std::int64_t row = 0; row + 1 < height; row += 2) {
      for (std::int64_t column = 0; column + 1 < width; column += 2) {
        const std::int64_t first = row * width + column, below = first + width;
        Number best = in[first];
        std::int64_t at = first;
        take_if_larger(in[first + 1], first + 1, best, at);
        take_if_larger(in[below], below, best, at);
        take_if_larger(in[below + 1], below + 1, best, at);
        *out++ = best;
        *index++ = at;
      }
    }
  }
}

// Torch's own backward pass, which can be differentiated again, takes the positions.
class PairPool : public torch::autograd::Function<PairPool> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const std::vector<std::int64_t> shape{x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2};
    at::Tensor out = at::empty(shape, x.options()), index = at::empty(shape, x.options().dtype(at::kLong));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "pool_pairs", [&] {
      pool_planes(x.const_data_ptr<scalar_t>(), x.size(0) * x.size(1), x.size(2), x.size(3), out.mutable_data_ptr<scalar_t>(),
                  index.mutable_data_ptr<std::int64_t>());
    });
    context->save_for_backward({x, index});
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& cotangent) {
    const variable_list saved = context->get_saved_variables();
    return {at::max_pool2d_with_indices_backward(cotangent[0], saved[0], kTwo, kTwo, kNone, kOne, false, saved[1])};
  }
};

}  // namespace

bool pools_pairs(const op::MaxPool2d& pool, const at::Tensor& x) {
  const bool pairs = pool.kernel == kTwo && (pool.stride == kTwo || pool.stride.empty()) && pool.padding == kNone &&
                     pool.dilation == kOne && !pool.ceil_mode;
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble;
  return pairs && known && x.is_cpu() && x.dim() == 4 && x.is_contiguous() && x.size(2) >= 2 && x.size(3) >= 2;
}

at::Tensor pool_pairs(const at::Tensor& x) {
  return PairPool::apply(x);
}

}  // namespace holdfast::model
