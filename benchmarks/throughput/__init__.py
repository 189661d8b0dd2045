"""Benchmarks of an evaluator that stays open: tiny evaluations, and a workload of short programs."""
