"""The pictures of README and docs, made by the code. `make pictures` runs it."""

from pathlib import Path

from offrecord.charts import redaction_chart, utility_chart
from offrecord.paper import figures

FOLDER = Path(__file__).parent / "pictures"


def main() -> None:
    """Write them over what is there."""
    FOLDER.mkdir(exist_ok=True)
    curve = utility_chart(figures.fig2(), figures.FIG2_NAMES)
    curve.write(FOLDER / "utility.svg", force=True)
    redaction_chart(*figures.fig3()).write(FOLDER / "redaction.svg", force=True)


if __name__ == "__main__":
    main()
