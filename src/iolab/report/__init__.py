"""Reports and exports: figures, tables and pages made from judged results, for people and tools."""
