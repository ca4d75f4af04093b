"""Command line: arguments in, one api verb, text and exit code out."""
