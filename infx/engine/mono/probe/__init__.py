"""What shows that a back end keeps mono's promises: rows that stand alone, the same layers, gain.

`rows` is what a probe says to a back end; `world` makes its rows, `properties` compares them,
`probing` goes through seeds and layers and `tally` counts. `host` is a subject over a cache on any
device, `arms` the three ways to run a layer, `compiled_arms` two of them on this machine's
processor. `serving` runs a model for `mono_check` and `acceptance`, which compare the arms on its
own steps; `timing` and `traffic` say how long a layer takes, and should.
"""
