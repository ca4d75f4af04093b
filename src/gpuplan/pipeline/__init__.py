"""The order of the rooms, one file per verb. The only place that enters them."""
