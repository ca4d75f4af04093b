"""Write the schema and the tables of keys of docs/reference anew from the file formats."""

import json
from pathlib import Path

from gpuplan.inputs.schema.reference import (
    cluster_reference,
    fleet_reference,
    scenario_reference,
    scenario_schema,
)

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def main() -> None:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    schema = json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"
    (REFERENCE / "scenario.schema.json").write_text(schema, encoding="utf-8")
    (REFERENCE / "scenario.md").write_text(scenario_reference(), encoding="utf-8")
    (REFERENCE / "fleet.md").write_text(fleet_reference(), encoding="utf-8")
    (REFERENCE / "cluster.md").write_text(cluster_reference(), encoding="utf-8")
    print("docs/reference/scenario.schema.json, scenario.md, fleet.md, cluster.md")


if __name__ == "__main__":
    main()
