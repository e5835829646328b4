"""The best rule list, with a certificate: branch and bound over all lists, for either likelihood.

`search` has the search, `bounds` its bounds with proofs, and `points` the points of the data that
no list can separate. `sums` adds up all lists, where they are few enough.
"""

from bayescascade.methods.lists.exact.search import BoundPoint, CertifiedList, best_list
from bayescascade.methods.lists.exact.sums import ListModel, ListSum, sum_over_lists

__all__ = ["BoundPoint", "CertifiedList", "ListModel", "ListSum", "best_list", "sum_over_lists"]
