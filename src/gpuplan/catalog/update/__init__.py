"""Fresh prices and model configs, in: public sources; out: checked files in a store."""
