"""Problem 1 of the paper: images of CIFAR-100, experiments 1A to 1D."""
