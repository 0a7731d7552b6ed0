"""The decode layer on an NVIDIA GPU: kernels, their compiling and launching, how weights lie.

No engine serves with it yet: a host binds `back_end`; probe, check and benches run both arms.

    kernels/            device code; one `.cu` a build, `.cuh` a stage or what stages share
    source, compiling   a build's text and key; its machine code, from disk or a compiler
    driver, arguments   the driver's calls through ctypes; the structure that kernels get
    arms                a kernel a stage, or a kernel a layer, for one width
    packing, pack       weights in the order in which kernels read them, and back; a whole layer's
    device, nvml        whether a GPU can run them now
    back_end            the library's back end over a host's weights and caches: borrowed judges
                        those, step_numbers a step's, width is a build, scratch what it works in
    gave_up             how a host hears of a wait that was in vain
    probed, replayed    random layers as `infx engine probe` and `check` want them; in graphs
    bench               a whole layer checked and timed: random_layer made it, judge judges it
    attention_bench     its attention half: attention_world made it, attention_truth judges it
    timing              graph replay, copy bandwidth, what the device says: for both benches
"""
