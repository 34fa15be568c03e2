"""The formulas of the structured loss on plain arrays: readable, and fast on the CPU."""
