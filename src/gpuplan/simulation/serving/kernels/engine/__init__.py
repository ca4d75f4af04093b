"""One serving engine: its state, its scheduler, its clock; and several behind a router."""
