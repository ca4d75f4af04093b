"""Files for Slurm, SkyPilot, dstack and Terraform."""
