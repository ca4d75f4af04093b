"""A plan with everything around it: servers, fabric, facility, money by month and team."""
