"""Templates of pages: jinja2 with escaping on; a name that is not given is an error."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("gpuplan.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, **values: object) -> str:
    """The named template, filled in."""
    return _environment().get_template(name).render(**values)
