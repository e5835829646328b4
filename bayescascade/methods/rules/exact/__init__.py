"""The best rule list, with a certificate: branch and bound over all lists, for either likelihood.

`search` has the search, `bounds` its bounds with proofs, and `points` the points of the data that
no list can separate.
"""

from bayescascade.methods.rules.exact.search import BoundPoint, CertifiedList, best_list

__all__ = ["BoundPoint", "CertifiedList", "best_list"]
