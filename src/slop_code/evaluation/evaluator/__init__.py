"""Evaluator: many evaluations in one program, with what stays in memory between them."""
