"""From a study file to a plan: pure functions over text and facts, without I/O."""
