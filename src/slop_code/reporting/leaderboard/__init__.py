"""Leaderboard of agents: reading runs, columns, terminal and files."""
