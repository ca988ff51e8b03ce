"""The pictures of README and docs, made by the code. `make pictures` runs it."""

from pathlib import Path

from offrecord.charts import redaction_chart, utility_chart, write_chart
from offrecord.paper import reproduce as paper

FOLDER = Path(__file__).parent / "pictures"


def main() -> None:
    """Write them, over what is there."""
    FOLDER.mkdir(exist_ok=True)
    write_chart(utility_chart(paper.fig2(), paper.FIG2_NAMES), FOLDER / "utility.svg", force=True)
    write_chart(redaction_chart(*paper.fig3()), FOLDER / "redaction.svg", force=True)


if __name__ == "__main__":
    main()
