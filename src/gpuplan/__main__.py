"""`python -m gpuplan`."""

from gpuplan.cli.app import main

main()
