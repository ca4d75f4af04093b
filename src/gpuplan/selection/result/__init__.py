"""Values of the columns as a plan: whole counts, its bill, and every rule checked again."""
