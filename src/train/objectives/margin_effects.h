// The maps of valid_effect of a table's margin, and between which bounds they stay when the numbers move.
//     number j     deviation_j times the mean of |slope| over the moves up and down. Its slope is piecewise constant in x_j:
//                      w_j + sum over gates x_g u_gj + sum over its bends c < x_j of v_jc / s_j
//                  and depends on no other number. Bounds are the least and the largest |slope| of the pieces that x_j +- (radius
//                  + move) meets; 0 is the least where two of them differ in sign.
//     category     mean over its other levels of |a + d.numbers|: bends cancel, and d is the difference of two rows of u. Bounds
//                  are radius * |d| away, in the mean.
// So for valid rows that are l2 `radius` apart in their numbers, with the same categories, least <= map <= most.
#pragma once

#include "holdfast/data/schema.h"
#include "table_margin.h"

namespace holdfast::train {

class MarginEffects {
 public:
  // Gates and bends are those of `form`; its weights are not looked at.
  MarginEffects(const Schema& schema, const TableMargin& form);

  // [B, features of the table], in true units. `least` is negative, and no bound but 0, where slopes differ in sign: how far.
  struct Found {
    at::Tensor map, least, most;
  };
  // Differentiable by the margin's weights.
  Found of(const TableMargin& margin, const at::Tensor& rows, double radius) const;

  // [features, columns]: 1 where the column belongs to the feature.
  const at::Tensor& columns() const { return columns_; }

 private:
  Found of_numbers(const TableMargin& margin, const at::Tensor& rows, double radius) const;
  Found of_categories(const TableMargin& margin, const at::Tensor& rows, double radius) const;

  at::Tensor columns_, order_;
  // A number each: its column, range, move and what effects are scaled by.
  at::Tensor numbers_, low_, high_, move_, deviation_;
  // [numbers, most bends of one]: ascending, infinity where a number has fewer. Place of each bend there.
  at::Tensor knots_, bend_number_, bend_place_;
  // [columns, columns]: 1 for columns of one category. [columns, categories]: one by its count of other levels.
  at::Tensor same_, share_;
  at::Tensor level_, other_;  // columns of all pairs of levels of a category
};

}  // namespace holdfast::train
