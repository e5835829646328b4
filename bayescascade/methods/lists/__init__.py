"""Rule lists: "if ..., else if ..., else ...", with a density or with class probabilities.

`antecedents` has the candidates, `rule_list` the state, `models` the formulas, `posterior` the
posteriors; `parts` counts cells; `density_list` and `label_list` are the results for users.
"""
