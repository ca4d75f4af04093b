"""scenario.yaml → Scenario: read, checked, converted once, with what was assumed."""
