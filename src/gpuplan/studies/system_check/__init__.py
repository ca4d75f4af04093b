"""A described system, judged: data path, network, hosts, power, balance, cheaper alternatives."""
