"""Copies of collections in memory that searches find candidates in; PostgreSQL remains the truth."""
