"""Self-contained HTML pages from jinja2 templates: escaping on, a name not given is an error."""

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
