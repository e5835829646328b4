"""The chain of imodels' `BayesianRuleListClassifier`, on the candidates and rows of a posterior.

imodels mines its own candidates, but its Markov chain takes whatever it is given. Here it is given
those of a `LabelListPosterior`, whose default prior is also its own, so that both chains draw from
lists over the same rules and start from the same list. One difference remains: imodels keeps the
log posterior of each list that it has seen, and looks it up when the list is proposed again.
"""

import pickle
from collections import Counter, defaultdict
from time import perf_counter

import numpy as np
from imodels.rule_list.bayesian_rule_list import brl_util

from bayescascade.methods.lists.rule_list import RuleList


class ImodelsChain:
    """imodels' Markov chain over lists of a posterior of two classes, of rows of weight one."""

    def __init__(self, posterior):
        table, prior = posterior.table, posterior.prior
        assert np.all(table.weights == 1)
        target = table.schema.names.index(posterior.target)
        features = np.delete(table.codes, target, axis=0)
        is_second = table.codes[target].astype(np.int64)
        captured = [set(range(table.n_distinct))]  # number 0 is the `else`
        for antecedent in posterior.antecedents:
            holds = np.ones(table.n_distinct, np.bool_)
            for column, low, high in antecedent:
                holds &= (features[column] >= low) & (features[column] < high)
            captured.append(set(np.flatnonzero(holds).tolist()))
        sizes = np.concatenate([[0], posterior.antecedents.sizes])
        self._prior = {
            "alpha": np.full(2, posterior.concentration),
            "lbda": prior.expected_rules,
            "eta": prior.expected_size,
        }
        self._data = {
            "X": captured,
            "Y": np.stack([1 - is_second, is_second], axis=1),
            "nruleslen": Counter(sizes.tolist()),
            "lhs_len": sizes,
            "maxlhs": posterior.antecedents.max_size,
        }
        self._seen = defaultdict(brl_util.default_permsdic)  # Any: imodels has no types

    def run(self, start, n_steps, seed):
        """Return the last list of a chain, and its steps a second."""
        started = perf_counter()
        _, visited = brl_util.bayesdl_mcmc(
            numiters=n_steps,
            thinning=1,
            permsdic=self._seen,
            burnin=0,
            rseed=seed,
            d_init=pickle.dumps([*(rule + 1 for rule in start.rules), 0]),
            **self._prior,
            **self._data,
        )
        speed = n_steps / (perf_counter() - started)
        return RuleList(tuple(rule - 1 for rule in pickle.loads(visited[-1])[:-1])), speed

    def traces(self, n_chains, n_steps, seed):
        """Return the draws of several chains as imodels runs and judges them, and its R-hat.

        Half of the steps are burn-in. The draws are of "log_posterior" and "n_rules", each
        (n_chains, n_draws) float64.
        """
        chains, r_hat = brl_util.run_bdl_multichain_serial(
            numiters=n_steps,
            thinning=1,
            permsdic=self._seen,
            burnin=n_steps // 2,
            nchains=n_chains,
            d_inits=[None] * n_chains,
            verbose=False,
            seed=seed,
            **self._prior,
            **self._data,
        )
        drawn = [
            [(self._seen[d][0], len(pickle.loads(d)) - 1) for d in chains[i]["perms"]]
            for i in range(n_chains)
        ]
        log_posterior, n_rules = np.moveaxis(np.array(drawn, np.float64), 2, 0)
        return {"log_posterior": log_posterior, "n_rules": n_rules}, float(r_hat)
