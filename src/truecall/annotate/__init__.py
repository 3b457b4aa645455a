"""Blind human validation of the detector, after the interface-censoring paper (its appendix F), without its mistakes.

A sample of turns, drawn by the detector's verdict, goes to annotators as pages that hold whole texts and no verdict.
Their answers come back as files bound to the bytes that were read. All disagreements go to one more person by a rule
that was fixed before. Then: agreement, kappa, precision and recall weighted back to the population, calibrated counts.

::

    frame     turns of runs and logs -> texts that can be annotated, with what the detector says of each
    making    texts -> strata, sample, key
    pack      items -> one page for one annotator
    folder    the annotation's folder: key, packs, returned answers
    disputes  answers -> what is disputed, the adjudicator's pack, the final answer
    numbers   answers -> agreement, precision, recall, calibrated counts
"""
