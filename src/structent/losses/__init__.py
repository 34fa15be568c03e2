"""The structured loss in each framework: import the module of the framework that you use."""
