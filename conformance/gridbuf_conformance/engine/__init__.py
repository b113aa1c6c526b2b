"""A run: plans go to a worker process, its measurements to the judge, and the verdicts into a
report.
"""
