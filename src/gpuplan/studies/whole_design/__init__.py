"""A plan with everything around it: nodes, fabric, place, money by month, rent or own."""
