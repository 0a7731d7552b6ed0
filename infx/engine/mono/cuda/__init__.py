"""The decode layer on an NVIDIA GPU: kernels, their compiling and launching, how weights lie.

No engine serves with it yet: a host binds `back_end`; probe, check and bench run both arms.

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
    builds              arms by width, compiled side by side
    setting, floor      what a bench's layers run on, and the bytes that they must read: pure
    random_layer, store weights drawn as kernels read them; caches of every kind
    random_step, world  a step of requests at any width; layers on it
    dense_layer         weights and scratch of layers with a dense MLP: M3's and M3.1's first ones
    judge               each stage against plain torch; judge_attention the attention half,
                        judge_dense a dense MLP
    checking, timing    both arms against each other and the judge; graph replay, copy bandwidth
    measuring, report   a bench's run, and its lines of text
    bench, tracing      its entry for who changes kernels: stages, marks, numbers of a build
"""
