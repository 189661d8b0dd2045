"""What can be said about a problem from its files alone, without running any of them."""
