"""An extension of the site's API pages: what `help()` knows, and the names in it set apart.

Options of a function may be those of an object (`offrecord.tables.options.takes`), and defaults may
be named elsewhere: both only show when the package runs. Words on a parameter or a field begin with
its name and a colon, in running text; on a page such names are code.
"""

import inspect
import re
from typing import Any

from griffe import Class, Docstring, Expr, Extension, Function, Parameter, ParameterKind, Parameters
from griffe import dynamic_import as imported

PLAIN = (str, int, float, bool, type(None))


class Described(Extension):
    """Signatures as they are called, descriptions that can be scanned."""

    def on_function(self, *, func: Function, **_: Any) -> None:
        """What a function takes, and its words."""
        if any(str(decorator.value).startswith("takes(") for decorator in func.decorators):
            real = imported(func.path)
            func.docstring = Docstring(inspect.getdoc(real) or "", parent=func)
            given = inspect.signature(real).parameters.values()
            func.parameters = Parameters(*map(_shown, given))
        elif any(isinstance(one.default, Expr) for one in func.parameters):
            _evaluate_defaults(func)
        _set_apart(func.docstring, [one.name for one in func.parameters])

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """The words on a class's fields, and on what it is made from."""
        _set_apart(cls.docstring, [*cls.attributes, *(one.name for one in cls.parameters)])


def _shown(one: inspect.Parameter) -> Parameter:
    """A parameter by name, type and default."""
    is_required = one.default is inspect.Parameter.empty
    default = getattr(one.default, "__name__", repr(one.default))
    kind = ParameterKind[one.kind.name.lower()]
    return Parameter(
        one.name, annotation=one.annotation, kind=kind, default=None if is_required else default
    )


def _evaluate_defaults(func: Function) -> None:
    """A default that is a name says little; its value more."""
    real = inspect.signature(imported(func.path)).parameters
    for one in func.parameters:
        if isinstance(one.default, Expr) and isinstance(real[one.name].default, PLAIN):
            one.default = repr(real[one.name].default)


def _set_apart(words: Docstring | None, names: list[str]) -> None:
    """`name: …` and `name, other: …` where a sentence begins, as bold code."""
    if words is None or not names:
        return
    one = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    begins = re.compile(rf"(^|[.;:)] |\.\n)((?:{one})(?:,\s(?:{one}))*)(?=:\s)", re.M)
    words.value = begins.sub(
        lambda found: found[1] + re.sub(r"\w+", r"**`\g<0>`**", found[2]), words.value
    )
