"""The results of small jobs are those of the corpus: decisions, coins and cells have not changed.

Where one is meant to change: `python -m tests.golden.jobs --write`, and say why in the commit.
"""

import json

import pytest
from tests.golden.jobs import CORPUS, JOBS, entry, results

EXPECTED = json.loads(CORPUS.read_text())


@pytest.mark.parametrize("name", JOBS)
def test_result_is_that_of_the_corpus(name):
    assert entry(results(JOBS[name])) == EXPECTED[name]


def test_corpus_has_no_other_jobs():
    assert list(EXPECTED) == list(JOBS)
