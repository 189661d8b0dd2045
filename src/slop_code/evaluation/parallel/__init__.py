"""Tests of a checkpoint in several pairs of boxes: proof that this is safe, durations of tests, and their division."""
