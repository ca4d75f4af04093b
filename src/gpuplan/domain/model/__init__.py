"""Networks: layers, parameters, number formats."""
