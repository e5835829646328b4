"""Rule lists: "if ..., else if ..., else ...", with a density or with labels at their ends.

`antecedents` are the candidates, `rule_list` the state, `models` the formulas, `posterior` what is
explored, `parts` counts cells; `density_list` and `label_list` are what a user sees.
"""
