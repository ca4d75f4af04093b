"""Links: constants of collectives per link class, stored and fitted."""
