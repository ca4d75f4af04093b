"""`gpuplan simulate`: its options, where requests come from, what is run and written."""
