"""KV-cache load: request traces of language models, replayed against a store of token blocks."""
