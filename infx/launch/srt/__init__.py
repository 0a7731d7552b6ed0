"""Jobs through NVIDIA's srt-slurm: ``srtctl`` submits and runs them, infx follows and gathers."""
