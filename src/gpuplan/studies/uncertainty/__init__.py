"""How sure a plan is: samples of demand, speed and prices, and fleets that stay enough."""
