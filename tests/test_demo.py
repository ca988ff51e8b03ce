"""The rules that the demo brings along are those that its fit asks for."""

import pytest

from offrecord import demo
from offrecord.mechanisms.rules import SETTINGS, Setting


def redactions(policy, mean):
    """Expected redactions around a lone record."""
    pair = policy.rules[Setting("record")]
    sides = ((pair.left, "left"), (pair.right, "right"))
    return sum(float(rule.expected_redactions(mean, 0, side)[0]) for rule, side in sides)


@pytest.mark.soak
def test_the_shipped_policy_is_made_anew():
    """Other versions of NumPy may draw other chains, so rules may differ a little."""
    fitted = demo.learned(demo.halves()[0])
    made, shipped = demo.designed(fitted), demo.shipped_policy()
    assert made.mechanism == shipped.mechanism == "owner"
    mean = fitted.posterior.mean
    assert redactions(made, mean) == pytest.approx(redactions(shipped, mean), rel=0.1)


def test_the_shipped_policy_serves_every_setting_and_keeps_its_promise():
    shipped = demo.shipped_policy()
    assert {one.kind for one in shipped.rules} == set(SETTINGS)
    members = demo.learned(demo.halves()[0]).posterior.members(1000, 5)
    assert (shipped.leakages(members) > demo.EPSILON).sum() <= 7
