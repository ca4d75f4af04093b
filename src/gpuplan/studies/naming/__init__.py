"""Names as people type them to nouns of the catalog: models, accelerators, formats, overlays."""
