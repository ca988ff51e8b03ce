"""The pictures of README and docs, made by the code. `make pictures` runs it."""

from pathlib import Path

from offrecord.charts import posterior_chart, redaction_chart, utility_chart, write_chart
from offrecord.paper import reproduce as paper
from offrecord.tables.meaning import posterior

FOLDER = Path(__file__).parent / "pictures"
#: Budgets of the picture of what they mean; with 0 nothing is learned.
BUDGETS = (0.0, 0.5, 1.0, 2.0, 3.0)


def main() -> None:
    """Write them, over what is there."""
    FOLDER.mkdir(exist_ok=True)
    write_chart(utility_chart(paper.fig2(), paper.FIG2_NAMES), FOLDER / "utility.svg", force=True)
    write_chart(posterior_chart(posteriors()), FOLDER / "posterior.svg", force=True)
    write_chart(redaction_chart(*paper.fig3()), FOLDER / "redaction.svg", force=True)


def posteriors() -> list[dict[str, float]]:
    """How likely a value is before, and at most after a release."""
    return [
        {"prior": share / 100, "posterior": posterior(share / 100, budget), "epsilon": budget}
        for budget in BUDGETS
        for share in range(101)
    ]


if __name__ == "__main__":
    main()
