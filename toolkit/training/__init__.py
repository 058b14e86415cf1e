"""Training: tasks and their losses, optimizers, workers, checkpoints, runs, and the loop around them.

task.py               batches, their shares, and the loss of a share: what translation.py, language.py, vectors.py give
config.py             settings of a run
optimizer.py          Adam, AdamW, Muon; schedules; averages of the weights
workers.py            processes that share the parameters and divide every update
trainer.py            the loop: updates, validation, roll-back, a clean way out
checkpoint.py         all that training continues from
run.py                a directory of checkpoints
"""
