"""Options as the command line takes them."""


def flags(options):
    """`{"by": "room", "force": True, "step": None}` as `--by room --force`."""
    words = []
    for name, value in options.items():
        if value is not None:
            words += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    return words
