"""The models' choices compared with measurements: records whose details have predictions
(records.py)."""

from statistics import median

# The criteria of a choice: entries of a record's details that hold a prediction. The least one is
# picked.
MODELS = {"cil_s": "CIL's formula", "cost_s": "general cost model", "elapsed_s": "planner", "simulated_s": "simulator"}
# The planner treats times within this fraction as equal and then decides by cost
# (docs/decisions/0002).
EQUAL = 0.005


def cases(records, experiment, but=()):
    """{labels: {scheme: record}} of the complete cases, without the schemes `but`."""
    by_labels = {}
    for record in records.all(experiment):
        if record["scheme"] in but:
            continue
        by_labels.setdefault(tuple(sorted(record["labels"].items())), {})[record["scheme"]] = record
    schemes = max(map(len, by_labels.values()), default=0)
    return {labels: case for labels, case in by_labels.items() if len(case) == schemes}


def fastest(case):
    return min(case, key=lambda scheme: median(case[scheme]["seconds"]))


def judged(case, model):
    """(the pick, whether it is the best or indistinguishable from it, regret: the fraction of the
    best's time that is lost)"""
    best = fastest(case)
    predicted = {scheme: record["details"] for scheme, record in case.items()}
    most = min(details[model] for details in predicted.values()) * (1 + (EQUAL if model == "elapsed_s" else 0))
    equal = [scheme for scheme in case if predicted[scheme][model] <= most]
    picked = min(equal, key=lambda scheme: predicted[scheme]["cost_s"])
    regret = median(case[picked]["seconds"]) / median(case[best]["seconds"]) - 1
    alike = min(case[picked]["seconds"]) <= max(case[best]["seconds"])
    return picked, alike, regret


def repeats(found):
    counts = [len(record["seconds"]) for case in found.values() for record in case.values()]
    least, most = min(counts, default=0), max(counts, default=0)
    return str(most) if least == most else f"{least} to {most}"


def errors(found):
    """How far the planner's predicted times deviate from the measured ones."""
    records = [record for case in found.values() for record in case.values()]
    off = sorted(record["details"]["elapsed_s"] / median(record["seconds"]) - 1 for record in records)
    if not off:
        return "nothing"
    at = [off[round(share * (len(off) - 1))] for share in (0, 0.1, 0.5, 0.9, 1)]
    return "least {:+.1%}, 10 % below {:+.1%}, median {:+.1%}, 10 % above {:+.1%}, most {:+.1%}".format(*at)
