"""Power: constants of accelerator draw and of power caps, stored and fitted."""
