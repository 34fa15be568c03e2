"""The paper, reproduced on real data: ``python -m paper months --data FOLDER``.

Its problems, a file each: ``months`` (Problem 2), ``counties`` (Problem 3), and on CIFAR-100
``small_network`` (Experiments 1A and 1B), ``fine_tuning`` (1C) and ``last_layer`` (1D). ``beyond``
has the questions that go further.
"""
