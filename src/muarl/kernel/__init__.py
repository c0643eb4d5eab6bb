"""The PyTorch kernel: from samples and advantages to new weights, and nothing else.

Reading order, a page each:

    model       build, load, save a causal language model
    lora        adapters beside its weights, which are trained instead of them
    batch       samples -> micro-batches that share a prefix
    attention   who sees whom, in the form that an attention path takes
    backbone    final hidden states, the prefix computed once, layers computed again if wanted
    logprobs    log-probs of sampled tokens, and of no other
    ways        which way of running a model is right for it, tried on a few tokens
    scoring     samples as a model scores them, without learning
    advantage   rewards of a group -> advantages
    loss        log-probs -> GRPO or supervised loss, and metrics
    optimizer   AdamW; Muon for the cold start; learning-rate schedules
    step        one optimizer update
    checkpoint  all of it on disk, atomically

Law L6 rules here: loss and gradient do not depend on the micro-batch split, padding or prefix
sharing (to rounding); an all-equal group gives no gradient; on policy the first ratio is 1.
"""
