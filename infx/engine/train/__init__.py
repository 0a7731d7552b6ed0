"""How the `mini` checkpoint is made: target on generated word problems, then its two drafts.

    conversations   token streams of gsm_mini, in the form that evaluations send
    schedule        what each step trains: length, attention, rounding, learning rate
    target, layer   the training form of the model: whole sequences, automatic gradients
    attention, experts, formulas, rounding    its parts
    optimiser       Muon for matrices, Adam for the rest
    step            one step; on CUDA a graph
    pretraining     the target's loop
    drafts, eagle, block    the training forms of EAGLE3 and DSpark
    draft_training  their loop
    decoding, evaluation, acceptance    scores and acceptance lengths
    state, export   what is left on disk

``python -m infx.engine.train --help``. Everything follows from seeds and numbers of steps, never
from the clock.
"""
