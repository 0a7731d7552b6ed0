"""The decode layer on an NVIDIA GPU: kernels, their compiling and launching, how weights lie.

No engine serves with it yet: both arms are run by the two benches.

    kernels/            device code; one `.cu` a build, `.cuh` a stage or what stages share
    source, compiling   a build's text and key; its machine code, from disk or a compiler
    driver, arguments   the driver's calls through ctypes; the structure that kernels get
    arms                a kernel a stage, or a kernel a layer, for one width
    packing             weights in the order in which kernels read them, and back
    device              whether a GPU could run them
    bench               a whole layer checked and timed: random_layer made it, judge judges it
    attention_bench     its attention half: attention_world made it, attention_truth judges it
    timing              graph replay, copy bandwidth, what the device says: for both benches
"""
