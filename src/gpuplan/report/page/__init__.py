"""Self-contained HTML pages from jinja2 templates: escaping on, a name not given is an error."""

import re
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from gpuplan.domain.sheet import Sheet


@cache
def _environment() -> Environment:
    loader = PackageLoader("gpuplan.report.page")
    strict = StrictUndefined
    return Environment(
        loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True
    )


def render(name: str, **values: object) -> str:
    """The named template, filled in."""
    return _environment().get_template(name).render(**values)


def sheet_html(sheet: Sheet) -> str:
    """A fragment for notebooks: the answer in bold, each table under its title, remarks folded."""
    return render("sheet.html.j2", sheet=sheet)


def sheet_page(sheet: Sheet, what: str, drawing: str = "") -> str:
    """A page that needs nothing else: the answer, a drawing, every table, remarks."""
    return render("tables.html.j2", sheet=sheet, what=what, drawing=drawing)


@cache
def svg_style() -> str:
    """Rules of drawings in light colours, for a drawing that stands alone."""
    css = render("style.css")
    colours = dict(re.findall(r"--(\w+):(#\w+)", css.splitlines()[0]))
    rules = [line for line in css.splitlines() if line.startswith(("svg ", ".c"))]
    retained = [
        re.sub(r"^svg ", "", rule) for rule in rules if not rule.startswith((".ca", ".ch", ".co"))
    ]
    return re.sub(r"var\(--(\w+)\)", lambda found: colours[found[1]], "".join(retained))
