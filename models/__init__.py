"""The nets, nothing else."""
