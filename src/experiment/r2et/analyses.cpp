#include "claims.h"

namespace holdfast::experiment::paper {

const std::map<std::string, Analysis>& r2et_analyses() {
  static const std::map<std::string, Analysis> all{{"table1", r2et::analyse_table1},
                                                   {"table2", r2et::analyse_table2},
                                                   {"table3", r2et::analyse_table3},
                                                   {"table4", r2et::analyse_table4},
                                                   {"fig3", r2et::analyse_fig3},
                                                   {"fig4", r2et::analyse_fig4},
                                                   {"explainers", r2et::analyse_explainers},
                                                   {"cost", r2et::analyse_cost},
                                                   {"bounds", r2et::analyse_bounds},
                                                   {"gauge", r2et::analyse_gauge},
                                                   {"beyond", r2et::analyse_beyond},
                                                   {"specific", r2et::analyse_specific},
                                                   {"regime", r2et::analyse_regime},
                                                   {"valid_rows", r2et::analyse_valid_rows}};
  return all;
}

}  // namespace holdfast::experiment::paper
