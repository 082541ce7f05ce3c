"""Benchmarks of Onecommit beside its peers on one PostgreSQL server, run by hand."""
