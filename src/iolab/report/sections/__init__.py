"""Parts of the report that only some results have, each made by a module of its own."""
