"""The experiments of the paper, on real data: what ``structent reproduce`` runs."""
