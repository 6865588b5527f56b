"""The proof of the measurement method: its claims, played over seeded scenarios of known truth."""
