"""Trees of submitted results of the AI storage suite, and what their own files say of each."""
