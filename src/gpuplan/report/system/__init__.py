"""Systems and designs: check, design, facility, networks, racks and the cost statement."""
