"""Where the paper does not hold as printed."""

from offrecord.paper.errata import errata


def test_every_erratum_has_its_counter_example():
    found = list(errata())
    assert len(found) == 8
    assert [erratum for erratum in found if not erratum.recomputed] == []
