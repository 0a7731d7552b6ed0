"""The decode layer on an NVIDIA GPU: kernels, their compiling and launching, how weights lie."""
