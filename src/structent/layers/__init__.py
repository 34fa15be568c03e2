"""The last layer of a network, which knows how its classes are related, in each framework."""
