"""ACEBench's agent tasks: five classes of tools in two languages, its calls in text, its scores."""
