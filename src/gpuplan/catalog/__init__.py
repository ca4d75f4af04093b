"""Facts with their sources, in: tables of the package and a user's overlay; out: domain nouns."""
