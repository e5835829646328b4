"""What releases cost in privacy, and what they cost together.

References
----------
Bun and Steinke (2016), Concentrated Differential Privacy: "BS".
Canonne, Kamath and Steinke (2020), The Discrete Gaussian for Differential Privacy: "CKS".
"""

from dataclasses import dataclass

from bayescascade.base.validation import check_real

__all__ = ["Cost"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a release gives away.

    Parameters
    ----------
    epsilon : float > 0
    delta : float in [0, 1)
        The release is (epsilon, delta)-private.
    rho : float > 0 or None
        The release is rho-zero-concentrated private. None: epsilon**2 / 2 if delta is 0 (BS,
        Proposition 1.4), and else unknown.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, above=0.0)
        check_real("delta", self.delta, minimum=0.0, below=1.0)
        if self.rho is not None:
            check_real("rho", self.rho, above=0.0)
        elif self.delta == 0.0:
            object.__setattr__(self, "rho", self.epsilon * self.epsilon / 2.0)
