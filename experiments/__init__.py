"""Entry points: run jobs, store their results, export them."""
