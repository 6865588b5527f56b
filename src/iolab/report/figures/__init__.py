"""Charts as pure functions from findings to Vega-Lite specs; nothing here draws."""
