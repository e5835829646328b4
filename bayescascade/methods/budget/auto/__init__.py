"""The method that suits a budget, chosen among all classifiers within budgets."""
