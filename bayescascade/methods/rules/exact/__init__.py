"""The best rule list, with a certificate: branch and bound over all lists, for either likelihood.

`search` is the search, `bounds` what it rests on, with the proofs; `points` is the data as no list
can part it.
"""

from bayescascade.methods.rules.exact.search import BoundPoint, CertifiedList, best_list

__all__ = ["BoundPoint", "CertifiedList", "best_list"]
