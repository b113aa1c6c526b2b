"""A run: plans go to a worker process, measurements to the judge, verdicts into a report."""
