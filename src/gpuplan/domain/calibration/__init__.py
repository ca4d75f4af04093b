"""Free constants of the models, users' own runs, and validation reports."""
