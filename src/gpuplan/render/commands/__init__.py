"""Command lines of engines and of training frameworks."""
