"""The thesis's machine: an effect model with the thesis's loss, weights and kernel."""

from dataclasses import dataclass
from typing import Any, ClassVar

from bayescascade.methods.effects.estimators import EffectModel
from bayescascade.methods.effects.parameters import CausalSVMParameters


@dataclass(eq=False, repr=False, kw_only=True)
class CausalSVM(EffectModel):
    """The conditional-difference support vector machine of the thesis, solved exactly.

    This is an `EffectModel` that minimizes the larger of two hinge risks in the treated population,
    without adjustment. `EffectModel` describes which effects it misses.

    Parameters
    ----------
    learner
        "auto" is "kernel" here.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescascade import CausalSVM
    >>> rng = np.random.default_rng(0)
    >>> X, treatment = rng.normal(size=(200, 2)), rng.random(200) < 0.5
    >>> y = treatment == (X[:, 0] > 0)
    >>> model = CausalSVM(kernel="rbf", length_scale=2.0, penalty=1e-4, random_state=0)
    >>> model = model.fit(X, y, treatment, 0.5)
    >>> model.exact_.gap < 1e-8, model.predict([[1.5, 0.0], [-1.5, 0.0]]).tolist()
    (True, [1, -1])
    """

    model_name: ClassVar[str] = "CausalSVM"
    title: ClassVar[str] = "causal support vector machine"
    declares = CausalSVMParameters

    surrogate: str = CausalSVMParameters.surrogate.default
    combine: str = CausalSVMParameters.combine.default
    adjust: str | bool = CausalSVMParameters.adjust.default
    kernel: str = CausalSVMParameters.kernel.default
    target: Any = CausalSVMParameters.target.default
    standardize: bool = CausalSVMParameters.standardize.default
