"""A description in words → a scenario: phrases in any order, each understood once or named."""
