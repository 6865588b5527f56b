"""Load on key-value stores in the report: operations a second and what each operation took."""
