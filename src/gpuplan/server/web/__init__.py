"""The web page: a client of the verbs over HTTP, rendered here."""
