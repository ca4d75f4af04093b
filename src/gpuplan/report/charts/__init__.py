"""Charts: from results to series, and from series to text, HTML, PNG and SVG."""
