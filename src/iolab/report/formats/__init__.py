"""What a report or its numbers are written as: HTML, PDF, Markdown, Word, OpenMetrics."""
