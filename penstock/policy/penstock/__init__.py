"""The policy `penstock`: what the papers' policies know, together, and a margin that is learnt."""
