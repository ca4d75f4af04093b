"""Studies: one question each, answered by several rooms; upper ones may ask lower ones."""
