"""Everything durable: PostgreSQL with pgvector, embedded or by DSN. The only package that imports psycopg."""
