"""Last layers of networks that know how their classes are related, for each framework."""
