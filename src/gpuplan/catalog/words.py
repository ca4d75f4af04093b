"""Words by which names and configurations are read: lists of them, and what each means.

They stand in `data/words.csv`, one a line: names of fields, of modules, of families.
"""

from gpuplan.csv_rows import packaged_rows


def meanings(of: str) -> dict[str, str]:
    """What each word of a list means, in the order of the table."""
    rows = packaged_rows("gpuplan.catalog", "data/words.csv")
    return {row["word"]: row["means"] for row in rows if row["list"] == of}


def words(of: str) -> tuple[str, ...]:
    """The words of a list, the first to be looked for first."""
    return tuple(meanings(of))


def by_meaning(of: str) -> dict[str, tuple[str, ...]]:
    """The words of a list for each thing that they mean."""
    found: dict[str, list[str]] = {}
    for word, meaning in meanings(of).items():
        found.setdefault(meaning, []).append(word)
    return {meaning: tuple(names) for meaning, names in found.items()}
